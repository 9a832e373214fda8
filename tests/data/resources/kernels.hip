#define GLOBAL(n) __attribute__((global, amdgpu_flat_work_group_size(1, n)))
extern "C" GLOBAL(1024) void plain(float *a) { a[__builtin_amdgcn_workitem_id_x()] *= 2; }
template <int N> GLOBAL(256) void tile(float *a) { __attribute__((shared)) float s[N]; int t = __builtin_amdgcn_workitem_id_x();
  s[t] = a[t]; __builtin_amdgcn_s_barrier(); a[t] = s[(t + 1) % N]; }
template GLOBAL(256) void tile<256>(float *);
template GLOBAL(256) void tile<4096>(float *);
template <int N> GLOBAL(1024) void heavy(float *a, int n) { float r[N]; int t = __builtin_amdgcn_workitem_id_x();
#pragma unroll
  for (int i = 0; i < N; i++) r[i] = a[i * n + t];
#pragma unroll
  for (int k = 0; k < 4; k++)
#pragma unroll
    for (int i = 0; i < N; i++) r[i] = r[i] * r[(i + 7 + k) % N] + 1;
#pragma unroll
  for (int i = 0; i < N; i++) a[i * n + t] = r[i]; }
template GLOBAL(1024) void heavy<24>(float *, int);
template GLOBAL(1024) void heavy<200>(float *, int);
