// Which sanitizer this is built with: g++ defines macros, clang++ has features. 0 or 1 each.
#pragma once

#if defined(__has_feature)
#define HEADLAB_HAS_FEATURE(feature) __has_feature(feature)
#else
#define HEADLAB_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || HEADLAB_HAS_FEATURE(address_sanitizer)
#define HEADLAB_ADDRESS_SANITIZER 1
#else
#define HEADLAB_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || HEADLAB_HAS_FEATURE(thread_sanitizer)
#define HEADLAB_THREAD_SANITIZER 1
#else
#define HEADLAB_THREAD_SANITIZER 0
#endif
