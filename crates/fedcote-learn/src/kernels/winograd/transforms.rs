//! The matrices G, B and A of F(4×4, 3×3) along one direction, and their adjoints.

use crate::kernels::simd::Simd;

/// G applied to three weights.
#[inline(always)]
pub(super) unsafe fn g<S: Simd>(w: [S; 3]) -> [S; 6] {
    // SAFETY: the caller promises the instruction set; likewise in the other transforms.
    unsafe {
        let even = w[0].add(w[2]).mul(S::splat(-1.0 / 6.0));
        let odd = w[1].mul(S::splat(1.0 / 6.0));
        let far_even = w[0].fma(S::splat(1.0 / 24.0), w[2].mul(S::splat(1.0 / 6.0)));
        let far_odd = w[1].mul(S::splat(1.0 / 12.0));
        [
            w[0].mul(S::splat(0.25)),
            even.sub(odd),
            even.add(odd),
            far_even.add(far_odd),
            far_even.sub(far_odd),
            w[2],
        ]
    }
}

/// Gᵀ applied to six sums.
#[inline(always)]
pub(super) unsafe fn g_adjoint<S: Simd>(u: [S; 6]) -> [S; 3] {
    // SAFETY: as for `g`.
    unsafe {
        let (near, far) = (u[1].add(u[2]).mul(S::splat(-1.0 / 6.0)), u[3].add(u[4]));
        let (near_odd, far_odd) = (u[2].sub(u[1]), u[3].sub(u[4]));
        [
            u[0].fma(S::splat(0.25), far.fma(S::splat(1.0 / 24.0), near)),
            near_odd.fma(S::splat(1.0 / 6.0), far_odd.mul(S::splat(1.0 / 12.0))),
            far.fma(S::splat(1.0 / 6.0), near).add(u[5]),
        ]
    }
}

/// Bᵀ applied to six inputs.
#[inline(always)]
pub(super) unsafe fn b<S: Simd>(x: [S; 6]) -> [S; 6] {
    // SAFETY: as for `g`.
    unsafe {
        let four = S::splat(4.0);
        let minus_four = S::splat(-4.0);
        let minus_five = S::splat(-5.0);
        let even = x[2].fma(minus_four, x[4]);
        let odd = x[1].fma(minus_four, x[3]);
        let far_even = x[4].sub(x[2]);
        let far_odd = x[3].sub(x[1]);
        [
            x[0].fma(four, x[2].fma(minus_five, x[4])),
            even.add(odd),
            even.sub(odd),
            far_odd.fma(S::splat(2.0), far_even),
            far_odd.fma(S::splat(-2.0), far_even),
            x[1].fma(four, x[3].fma(minus_five, x[5])),
        ]
    }
}

/// Aᵀ applied to six products.
#[inline(always)]
pub(super) unsafe fn a<S: Simd>(m: [S; 6]) -> [S; 4] {
    // SAFETY: as for `g`.
    unsafe {
        let (even, odd) = (m[1].add(m[2]), m[1].sub(m[2]));
        let (far_even, far_odd) = (m[3].add(m[4]), m[3].sub(m[4]));
        [
            m[0].add(even).add(far_even),
            far_odd.fma(S::splat(2.0), odd),
            far_even.fma(S::splat(4.0), even),
            far_odd.fma(S::splat(8.0), odd).add(m[5]),
        ]
    }
}

/// A applied to four slopes.
#[inline(always)]
pub(super) unsafe fn a_adjoint<S: Simd>(y: [S; 4]) -> [S; 6] {
    // SAFETY: as for `g`.
    unsafe {
        let (even, odd) = (y[0].add(y[2]), y[1].add(y[3]));
        let far_even = y[2].fma(S::splat(4.0), y[0]);
        let far_odd = y[3].fma(S::splat(8.0), y[1].mul(S::splat(2.0)));
        [y[0], even.add(odd), even.sub(odd), far_even.add(far_odd), far_even.sub(far_odd), y[3]]
    }
}
