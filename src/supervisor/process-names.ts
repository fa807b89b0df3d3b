/** The processes of a worker. */
export type ProcessName = 'kubelet' | 'flanneld' | 'kube-proxy' | 'kube-network-policies'

/** In the order in which they are started: each needs what those before it have made. */
export const PROCESS_NAMES: readonly ProcessName[] = ['kubelet', 'flanneld', 'kube-proxy', 'kube-network-policies']

/** A number for each of them. */
export function perProcess(value: number): Record<ProcessName, number> {
  return { kubelet: value, flanneld: value, 'kube-proxy': value, 'kube-network-policies': value }
}
