//! Differential inference: what the ratio of two noisy counts reveals.
//!
//! Both counts are answered with Laplace noise. Their ratio estimates the share of a sensitive value.
//!
//! # Citations
//! - [Wang et al. 2012], the differential inference theorem.
//! - `docs/spec/bucketize.md#differential-inference`

/// Two true counts, the first above 0, and the scale of the noise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NoisyRatio {
    /// Number of rows with the known values.
    pub x: f64,
    /// Number of these rows with the sensitive value.
    pub y: f64,
    /// The scale b of the Laplace distribution: the sensitivity divided by the budget of the answer.
    pub scale: f64,
}

impl NoisyRatio {
    /// Share of the sensitive value.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.y / self.x
    }

    /// Bias of the noisy ratio, to second order.
    #[must_use]
    pub fn factor(&self) -> f64 {
        2.0f64.mul_add(self.spread(), 1.0)
    }

    /// Variance of the noisy ratio, to second order.
    #[must_use]
    pub fn variance(&self) -> f64 {
        2.0 * self.spread() * self.ratio().mul_add(self.ratio(), 1.0)
    }

    fn spread(&self) -> f64 {
        (self.scale / self.x).powi(2)
    }

    /// Probability that the noisy denominator is not positive, where the ratio is meaningless.
    #[must_use]
    pub fn nonpositive(&self) -> f64 {
        0.5 * (-self.x / self.scale).exp()
    }

    /// Probability that the noisy ratio is at most `r`, at least 0; the error is at most [`Self::nonpositive`].
    #[must_use]
    pub fn at_most(&self, r: f64) -> f64 {
        // of the noise W = N2 - r N1
        let room = r.mul_add(self.x, -self.y);
        let (first, second, a) = (self.scale, r * self.scale, room.abs());
        let tail = if second <= 0.0 {
            (-a / first).exp()
        } else if (first - second).abs() < 1e-6 * first {
            let b = f64::midpoint(first, second);
            (1.0 + a / (2.0 * b)) * (-a / b).exp()
        } else {
            let weighed = |b: f64| b * b * (-a / b).exp();
            (weighed(first) - weighed(second)) / (first * first - second * second)
        };
        let tail = tail.clamp(0.0, 1.0);
        if room >= 0.0 { 1.0 - tail / 2.0 } else { tail / 2.0 }
    }

    /// Probability that the relative error of the noisy ratio is at most this number, from 0 to 1.
    #[must_use]
    pub fn within(&self, part: f64) -> f64 {
        let ratio = self.ratio();
        (self.at_most(ratio * (1.0 + part)) - self.at_most(ratio * (1.0 - part))).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of its own (SplitMix64).
    fn next(state: &mut u64) -> f64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    #[test]
    fn the_figures_are_those_of_the_text() {
        let near = NoisyRatio { x: 100.0, y: 80.0, scale: 10.0 };
        let far = NoisyRatio { x: 1000.0, y: 800.0, scale: 10.0 };
        assert!((near.factor() - 1.02).abs() < 1e-12 && (far.factor() - 1.0002).abs() < 1e-12);
        assert!((near.variance() - 3.28e-2).abs() < 1e-12 && (far.variance() - 3.28e-4).abs() < 1e-12);
        assert!((near.nonpositive() - 2.27e-5).abs() < 1e-7);
        assert!((near.within(0.1) - 0.406).abs() < 5e-4, "{}", near.within(0.1));
        assert!((far.within(0.1) - 0.999).abs() < 5e-4, "{}", far.within(0.1));
    }

    #[test]
    fn probabilities_are_those_of_drawn_noise() {
        let mut state = 7;
        for (x, y, scale) in [(100.0, 80.0, 10.0), (50.0, 50.0, 10.0), (200.0, 0.0, 10.0)] {
            let of = NoisyRatio { x, y, scale };
            let draws = 40_000;
            let mut laplace = || -scale * (next(&mut state).max(1e-300) / next(&mut state).max(1e-300)).ln();
            let ratios: Vec<f64> = (0..draws).map(|_| (y + laplace()) / (x + laplace())).collect();
            for r in [0.0, 0.5, 0.9 * y / x, 1.0, 1.1 * y / x, 2.0] {
                let seen = ratios.iter().filter(|ratio| **ratio <= r).count() as f64 / f64::from(draws);
                assert!(
                    (seen - of.at_most(r)).abs() < 0.012 + of.nonpositive(),
                    "{x} {y} {r}: {seen} {}",
                    of.at_most(r)
                );
            }
        }
    }
}
