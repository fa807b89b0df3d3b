/** Generates `/metrics` of a simulated kubelet, with the few metrics that tools check first. Pure. */
export function plainMetrics(node: string, runningPods: number): string {
  return [
    '# HELP kubelet_node_name [ALPHA] Always 1; the label is the name of the node.',
    '# TYPE kubelet_node_name gauge',
    `kubelet_node_name{node="${node}"} 1`,
    '# HELP kubelet_running_pods [BETA] Pods whose sandbox runs.',
    '# TYPE kubelet_running_pods gauge',
    `kubelet_running_pods ${runningPods}`,
    '',
  ].join('\n')
}
