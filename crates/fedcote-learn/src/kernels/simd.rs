//! One small vector type per instruction set, and the choice among them at run time.
//!
//! Kernels are written once, generic over [`Simd`], and marked `#[inline(always)]`; [`dispatch!`] makes one
//! entry point for each instruction set, under `#[target_feature]`, into which the generic code is inlined.

/// A vector of floats. All functions are inlined into an entry point that enables the instruction set.
///
/// # Safety
///
/// Every function may be called only where the CPU has the instruction set of the type; `load` and `store`
/// need `LANES` floats at the pointer, which need not be aligned.
pub(super) trait Simd: Copy {
    /// Floats in a vector.
    const LANES: usize;
    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// self · factor + term.
    unsafe fn fma(self, factor: Self, term: Self) -> Self;
    /// max(self, 0).
    unsafe fn relu(self) -> Self;
    /// self where `gate` is positive, 0 elsewhere.
    unsafe fn gated(self, gate: Self) -> Self;
}

/// Plain arrays, which the compiler turns into whatever vectors the target has.
#[derive(Clone, Copy)]
pub(super) struct Portable([f32; 8]);

impl Simd for Portable {
    const LANES: usize = 8;
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self([value; 8])
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller has eight floats there; `[f32; 8]` is as aligned as `f32`.
        Self(unsafe { from.cast::<[f32; 8]>().read() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: as for `load`.
        unsafe { to.cast::<[f32; 8]>().write(self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - other.0[i]))
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] * other.0[i]))
    }
    #[inline(always)]
    unsafe fn fma(self, factor: Self, term: Self) -> Self {
        // Not `mul_add`: without the instruction that is a slow library call.
        Self(std::array::from_fn(|i| self.0[i] * factor.0[i] + term.0[i]))
    }
    #[inline(always)]
    unsafe fn relu(self) -> Self {
        Self(self.0.map(|value| if value > 0.0 { value } else { 0.0 }))
    }
    #[inline(always)]
    unsafe fn gated(self, gate: Self) -> Self {
        Self(std::array::from_fn(|i| if gate.0[i] > 0.0 { self.0[i] } else { 0.0 }))
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use super::Simd;
    use std::arch::x86_64::*;

    /// Implements [`Simd`] by one intrinsic each.
    macro_rules! vector {
        ($name:ident, $register:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident, $add:ident,
         $sub:ident, $mul:ident, $fma:ident, $max:ident, $zero:ident, $gated:expr) => {
            #[derive(Clone, Copy)]
            pub(in super::super) struct $name($register);

            // SAFETY, for every block: the caller promises the instruction set, and memory for `LANES` floats.
            impl Simd for $name {
                const LANES: usize = $lanes;
                #[inline(always)]
                unsafe fn splat(value: f32) -> Self {
                    Self(unsafe { $splat(value) })
                }
                #[inline(always)]
                unsafe fn load(from: *const f32) -> Self {
                    Self(unsafe { $load(from) })
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut f32) {
                    unsafe { $store(to, self.0) }
                }
                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    Self(unsafe { $add(self.0, other.0) })
                }
                #[inline(always)]
                unsafe fn sub(self, other: Self) -> Self {
                    Self(unsafe { $sub(self.0, other.0) })
                }
                #[inline(always)]
                unsafe fn mul(self, other: Self) -> Self {
                    Self(unsafe { $mul(self.0, other.0) })
                }
                #[inline(always)]
                unsafe fn fma(self, factor: Self, term: Self) -> Self {
                    Self(unsafe { $fma(self.0, factor.0, term.0) })
                }
                #[inline(always)]
                unsafe fn relu(self) -> Self {
                    Self(unsafe { $max(self.0, $zero()) })
                }
                #[inline(always)]
                unsafe fn gated(self, gate: Self) -> Self {
                    Self(unsafe { $gated(self.0, gate.0) })
                }
            }
        };
    }

    #[inline(always)]
    unsafe fn gated256(value: __m256, gate: __m256) -> __m256 {
        // SAFETY: called only by `Avx2`, whose caller promises AVX.
        unsafe { _mm256_and_ps(value, _mm256_cmp_ps::<_CMP_GT_OQ>(gate, _mm256_setzero_ps())) }
    }

    #[inline(always)]
    unsafe fn gated512(value: __m512, gate: __m512) -> __m512 {
        // SAFETY: called only by `Avx512`, whose caller promises AVX-512F.
        unsafe {
            let open = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(gate, _mm512_setzero_ps());
            _mm512_maskz_mov_ps(open, value)
        }
    }

    vector!(
        Avx2,
        __m256,
        8,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_mul_ps,
        _mm256_fmadd_ps,
        _mm256_max_ps,
        _mm256_setzero_ps,
        gated256
    );
    vector!(
        Avx512,
        __m512,
        16,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_mul_ps,
        _mm512_fmadd_ps,
        _mm512_max_ps,
        _mm512_setzero_ps,
        gated512
    );
}

/// An instruction set that this CPU has: the only way to get one is to ask the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path(pub(super) Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Path {
    /// All that this CPU supports, best first; the last is portable.
    pub fn supported() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let fma = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if fma && is_x86_feature_detected!("avx512f") {
                sets.push(Self(Set::Avx512));
            }
            if fma {
                sets.push(Self(Set::Avx2));
            }
        }
        sets.push(Self(Set::Portable));
        sets
    }

    /// The best that this CPU supports.
    pub fn best() -> Self {
        Self::supported()[0]
    }

    /// What every CPU supports, with the same results on all of them.
    pub fn portable() -> Self {
        Self(Set::Portable)
    }

    /// The name of the instruction set.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            Set::Portable => "portable",
        }
    }
}

/// Defines a function that calls `generic::<S>` with the vector type of a [`Path`].
///
/// The generic function may be unsafe only in that the CPU must have the instruction set of `S`; it checks
/// its slices itself.
macro_rules! dispatch {
    ($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) = $generic:ident) => {
        $(#[$attribute])*
        #[allow(clippy::too_many_arguments)]
        pub(crate) fn $name(path: $crate::kernels::Path, $($argument: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx2,fma")]
            fn avx512($($argument: $type),*) {
                // SAFETY: this function is only entered where the CPU has AVX-512F.
                unsafe { $generic::<$crate::kernels::simd::x86::Avx512>($($argument),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($argument: $type),*) {
                // SAFETY: this function is only entered where the CPU has AVX2 and FMA.
                unsafe { $generic::<$crate::kernels::simd::x86::Avx2>($($argument),*) }
            }
            match path.0 {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: a `Path` of this kind exists only where the CPU has the instruction set.
                $crate::kernels::simd::Set::Avx512 => unsafe { avx512($($argument),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: likewise.
                $crate::kernels::simd::Set::Avx2 => unsafe { avx2($($argument),*) },
                // SAFETY: the portable type needs no instruction set.
                $crate::kernels::simd::Set::Portable => unsafe {
                    $generic::<$crate::kernels::simd::Portable>($($argument),*)
                },
            }
        }
    };
}
pub(super) use dispatch;
