/** The names of the processes on a worker node, in start order. */
export type ProcessName = 'kubelet' | 'flanneld' | 'kube-proxy' | 'kube-network-policies'

/** In start order: each depends on those before it. */
export const PROCESS_NAMES: readonly ProcessName[] = ['kubelet', 'flanneld', 'kube-proxy', 'kube-network-policies']

/** One number for each process. */
export function perProcess(value: number): Record<ProcessName, number> {
  return { kubelet: value, flanneld: value, 'kube-proxy': value, 'kube-network-policies': value }
}
