"""Footsteps heard by four sensors, some of them broken: a stand-in for recordings that are not public (G7.4).

150 subjects, 84 walking alone (label -1) and 66 leading an animal (+1), eight segments of 1.2 s each at 10 kHz, four
sensors. A sensor fails for a whole subject. Every draw comes from one generator in the order that G7.4 gives, so that a
seed gives the published data.

| G7.4 | function |
|---|---|
| pulse | `_pulse` |
| subject, with animal | `_draw_subject`, `_draw_voice` |
| source | `_add_human`, `_add_animal` |
| sensor | `_record` |
| failures | `_fail` |
| features | `footstep_features` |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, rfft
from scipy.signal import lfilter

__all__ = ["FootstepStudy", "footstep_features", "make_footsteps", "split_footsteps"]

Array = NDArray[np.float64]

RATE = 10_000  # samples per second
LENGTH = 12_000  # samples of a segment
DURATION = 1.2  # seconds of a segment
PULSE_TIMES = np.arange(1200) / RATE
TIMES = np.arange(LENGTH) / RATE
N_ALONE, N_WITH_ANIMAL, N_SEGMENTS, N_SENSORS = 84, 66, 8, 4
GAIN = (1.0, 0.8, 0.55, 0.9)
NOISE = (1.0, 1.1, 1.6, 1.0)
TONE = (1.0, 1.5, 1.0, 0.5)
FAILURE_RATE = (0.20, 0.25, 0.47, 0.12)
FAILURE_MODES = (
    ("burst", "saturation", "drift"),
    ("dead", "burst"),
    ("dropout", "burst", "saturation", "drift"),
    ("burst", "dropout"),
)
FULL_CIRCLE = 6.28  # as in the reference data


@dataclass(frozen=True)
class FootstepStudy:
    """One data set: 1200 segments, four sensors.

    `features` (1200, 4, 200); `target` -1 alone, +1 with an animal; `subject` number of each segment's subject; `failed`
    (1200, 4) True where the sensor was broken; `mode` (1200, 4) how, '' where it was not.
    """

    features: Array
    target: NDArray[np.int64]
    subject: NDArray[np.int64]
    failed: NDArray[np.bool_]
    mode: NDArray[np.str_]


@dataclass(frozen=True)
class _Voice:
    """What a foot sounds like: partials as (frequency, amplitude), decay, strength and pace."""

    pace: float
    amplitude: float
    decay: float
    partials: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class _Failure:
    mode: str
    a: float
    v: float
    e: float


def make_footsteps(random_state: int | np.random.Generator | None = None) -> FootstepStudy:
    """One footstep data set; takes some seconds. Seeds 0 (development) and 1 (held out) are the published ones."""
    rng = np.random.default_rng(random_state)
    responses = [_draw_response(rng) for _ in range(N_SENSORS)]
    with_animal = np.arange(N_ALONE + N_WITH_ANIMAL) >= N_ALONE
    features, modes = [], []
    for animal in with_animal:
        human, beast, failures = _draw_subject(rng, bool(animal))
        modes.append([failure.mode for failure in failures])
        for _ in range(N_SEGMENTS):
            signals = _draw_segment(rng, human, beast, responses, failures)
            features.append(footstep_features(signals))
    mode = np.repeat(np.array(modes), N_SEGMENTS, axis=0)
    return FootstepStudy(
        features=np.array(features),
        target=np.repeat(np.where(with_animal, 1, -1), N_SEGMENTS),
        subject=np.repeat(np.arange(len(with_animal)), N_SEGMENTS),
        failed=mode != "",
        mode=mode,
    )


def split_footsteps(study: FootstepStudy, repetition: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Training rows (25 subjects of each class) and test rows (all others) of one repetition (G7.4, splits)."""
    rng = np.random.default_rng(repetition)
    alone = rng.choice(N_ALONE, 25, replace=False)
    accompanied = N_ALONE + rng.choice(N_WITH_ANIMAL, 25, replace=False)
    chosen = np.isin(study.subject, np.concatenate([alone, accompanied]))
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


def _draw_response(rng: np.random.Generator) -> Array:
    """Impulse response: direct sound, a pause, twenty decaying echoes."""
    pause = int(rng.integers(5, 30))
    echoes = rng.normal(0, 0.4, 20) * np.exp(-np.arange(20) / 8)
    return np.concatenate([[1.0], np.zeros(pause), echoes])


def _draw_subject(rng: np.random.Generator, with_animal: bool) -> tuple[_Voice, _Voice | None, list[_Failure]]:
    pace, amplitude, decay = rng.normal(1.9, 0.18), np.exp(rng.normal(0, 0.35)), rng.uniform(0.012, 0.035)
    first = (rng.uniform(180, 420), 1.0)
    second = (rng.uniform(500, 1100), 0.6 * np.exp(rng.normal(0, 0.3)))
    third = (rng.uniform(1200, 2400), 0.25 * np.exp(rng.normal(0, 0.5)))
    human = _Voice(pace, amplitude, decay, (first, second, third))
    animal = _draw_voice(rng) if with_animal else None
    modes = [
        str(rng.choice(choices)) if rng.random() < rate else ""
        for rate, choices in zip(FAILURE_RATE, FAILURE_MODES, strict=True)
    ]
    return human, animal, [_draw_failure(rng, mode) for mode in modes]


def _draw_voice(rng: np.random.Generator) -> _Voice:
    pace, amplitude, decay = rng.normal(1.15, 0.15), 0.75 * np.exp(rng.normal(0, 0.5)), rng.uniform(0.006, 0.02)
    frequencies = rng.uniform(250, 600), rng.uniform(1000, 1900), rng.uniform(1700, 2800)
    amplitudes = 0.6, 0.9, 0.5 * np.exp(rng.normal(0, 0.5))
    return _Voice(pace, amplitude, decay, tuple(zip(frequencies, amplitudes, strict=True)))


def _draw_failure(rng: np.random.Generator, mode: str) -> _Failure:
    a, v = np.exp(rng.normal(0, 1)), np.exp(rng.normal(2.3, 0.6))
    return _Failure(mode, a, v, rng.choice([-1, 1]) * rng.uniform(2, 5))


def _draw_segment(
    rng: np.random.Generator,
    human: _Voice,
    animal: _Voice | None,
    responses: list[Array],
    failures: list[_Failure],
) -> Array:
    source = np.zeros(LENGTH)
    _add_human(rng, source, human)
    if animal is not None:
        _add_animal(rng, source, animal)
    return np.array([_record(rng, source, j, responses[j], failures[j]) for j in range(N_SENSORS)])


def _pulse(rng: np.random.Generator, voice: _Voice, decay: float) -> Array:
    phases = rng.uniform(0, FULL_CIRCLE, len(voice.partials))
    noise = rng.standard_normal(len(PULSE_TIMES))
    tones = sum(
        amplitude * np.sin(2 * np.pi * frequency * PULSE_TIMES + phase)
        for (frequency, amplitude), phase in zip(voice.partials, phases, strict=True)
    )
    return np.asarray((tones + 0.7 * noise) * np.exp(-PULSE_TIMES / decay))


def _add(source: Array, start: int, pulse: Array) -> None:
    stop = min(LENGTH, start + len(pulse))
    source[start:stop] += pulse[: stop - start]


def _add_human(rng: np.random.Generator, source: Array, voice: _Voice) -> None:
    time = 0.06 + rng.normal(0, 0.02)
    while time < DURATION:
        heel = max(0, int(time * RATE))  # "not below 0" holds for the sample; the clock of the steps runs on
        factor = np.exp(rng.normal(0, 0.15))
        _add(source, heel, voice.amplitude * factor * _pulse(rng, voice, voice.decay))
        toe = heel + int(rng.normal(0.11, 0.015) * RATE)
        if toe < LENGTH:
            _add(source, toe, 0.45 * voice.amplitude * _pulse(rng, voice, voice.decay * 0.7))
        time += np.exp(rng.normal(0, 0.04)) / voice.pace


def _add_animal(rng: np.random.Generator, source: Array, voice: _Voice) -> None:
    period = 1 / voice.pace
    time = rng.uniform(0, period) - 0.2
    while time < DURATION:
        for phase in (0.0, 0.22, 0.5, 0.74):
            hoof = int((time + (phase + rng.normal(0, 0.02)) * period) * RATE)
            if 0 <= hoof < LENGTH:
                factor = np.exp(rng.normal(0, 0.25))
                _add(source, hoof, voice.amplitude * factor * _pulse(rng, voice, voice.decay))
        time += period


def _record(rng: np.random.Generator, source: Array, sensor: int, response: Array, failure: _Failure) -> Array:
    red = lfilter([1.0], [1.0, -0.97], rng.standard_normal(LENGTH)) * (0.05 * np.exp(rng.normal(0, 0.4)))
    level = TONE[sensor] * 0.03 * np.exp(rng.normal(0, 0.5))
    hum = sum(np.sin(2 * np.pi * f * TIMES + phase) for f, phase in zip((1766, 2647), _phases(rng), strict=True))
    white = 0.05 * rng.standard_normal(LENGTH)
    heard = GAIN[sensor] * np.convolve(source, response)[:LENGTH]
    return _fail(rng, heard + NOISE[sensor] * (red + white) + level * hum, failure)


def _phases(rng: np.random.Generator) -> Array:
    return rng.uniform(0, FULL_CIRCLE, 2)


def _fail(rng: np.random.Generator, signal: Array, failure: _Failure) -> Array:
    if failure.mode == "dropout":
        return 0.01 * failure.a * rng.standard_normal(LENGTH)
    if failure.mode == "dead":
        return 0.004 * rng.standard_normal(LENGTH) + 0.05 * np.sin(2 * np.pi * 60 * TIMES)
    if failure.mode == "saturation":
        return np.clip(failure.v * signal, -0.3, 0.3)
    if failure.mode == "drift":
        ramp = np.linspace(0, 1, LENGTH)  # t / T reaches 1 at the last sample, as in the reference data
        return signal * np.exp(failure.e * ramp) + 0.3 * abs(failure.e) * ramp * rng.standard_normal(LENGTH)
    if failure.mode == "burst":
        for _ in range(int(rng.integers(4, 14))):
            start = int(rng.integers(0, LENGTH - 400))
            signal[start : start + 400] += 0.5 * failure.v * rng.standard_normal(400) * np.hanning(400)
    return signal


def footstep_features(signals: Array) -> Array:
    """Mel cepstra averaged over ten stretches of time, (..., 12000) samples -> (..., 200).

    Frames of 32 ms every 8 ms, Hamming window, 512-point power spectrum, 40 mel filters, logarithm, first 20 cosine
    coefficients, mean over ten nearly equal runs of frames.
    """
    frames = np.lib.stride_tricks.sliding_window_view(signals, 320, axis=-1)[..., ::80, :]
    power = np.abs(rfft(frames * np.hamming(320), 512)) ** 2
    cepstra = dct(np.log(power @ _mel_filters() + 1e-6), type=2, norm="ortho")[..., :20]
    blocks = np.array_split(np.arange(cepstra.shape[-2]), 10)
    means = np.stack([cepstra[..., block, :].mean(axis=-2) for block in blocks], axis=-2)
    return means.reshape(*signals.shape[:-1], 200)


@cache
def _mel_filters() -> Array:
    """Forty triangles of peak 1 between 133.33 and 3000 Hz, (257, 40)."""
    low, high = 2595 * np.log10(1 + np.array([133.33, 3000.0]) / 700)
    corners = 700 * (10 ** (np.linspace(low, high, 42) / 2595) - 1)
    frequency = np.arange(257)[:, None] * RATE / 512
    left, peak, right = corners[:-2], corners[1:-1], corners[2:]
    return np.clip(np.minimum((frequency - left) / (peak - left), (right - frequency) / (right - peak)), 0, None)
