struct alignas(16) Four { float x, y, z, w; __device__ Four() {} __device__ Four(int n) { x = y = z = w = n; }
  __device__ Four operator*(Four o) { Four r; r.x = x * o.y; r.y = y * o.x; r.z = z * o.w; r.w = w * o.z; return r; }
  __device__ Four operator+(Four o) { Four r; r.x = x + o.x; r.y = y + o.y; r.z = z + o.z; r.w = w + o.w; return r; } };
extern "C" __global__ void plain(float *a) { a[threadIdx.x] *= 2; }
template <int N> __global__ void tile(float *a, const float *b, int n) {
  __shared__ float s[N]; s[threadIdx.x] = a[threadIdx.x]; __syncthreads(); a[threadIdx.x] = s[(threadIdx.x + 1) % N] * b[n]; }
template __global__ void tile<256>(float *, const float *, int);
template __global__ void tile<1024>(float *, const float *, int);
template <typename T, int N> __global__ void heavy(T *a, int n) {
  T r[N];
#pragma unroll
  for (int i = 0; i < N; i++) r[i] = a[i * n + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 4; k++) {
#pragma unroll
    for (int i = 0; i < N; i++) r[i] = r[i] * r[(i + 7 + k) % N] + T(1); }
#pragma unroll
  for (int i = 0; i < N; i++) a[i * n + threadIdx.x] = r[i]; }
template __global__ void heavy<double, 40>(double *, int);
template __global__ void heavy<float, 64>(float *, int);
template __global__ void heavy<short, 160>(short *, int);
template __global__ void heavy<Four, 20>(Four *, int);
__global__ void array(float *a, int n) { float r[64], q[50];
#pragma unroll
  for (int i = 0; i < 50; i++) q[i] = a[i * n + threadIdx.x];
  for (int i = 0; i < n; i++) { r[(i * 7) % 64] += q[i % 3];
#pragma unroll
    for (int j = 0; j < 50; j++) q[j] = q[j] * r[i % 64] + q[(j + 1) % 50]; }
#pragma unroll
  for (int i = 0; i < 50; i++) a[i * n + threadIdx.x] = q[i];
  a[0] += r[n % 64]; }
__constant__ float table[128];
__global__ void constants(float *a, double *b) { a[threadIdx.x] = table[threadIdx.x % 128]; b[0] = sin(b[1]); }
__device__ __noinline__ float again(float x, int n) { return n <= 0 ? x : again(x * 2, n - 1) + 1; }
__global__ void recursive(float *a, int n) { a[0] = again(a[0], n); }
__device__ __noinline__ float shared(float *a, int n) { __shared__ float s[300]; s[n] = a[n]; __syncthreads(); return s[n ^ 1]; }
__global__ void calls(float *a, int n) { a[0] = shared(a, n); }
