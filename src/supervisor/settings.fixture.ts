/** Settings of a Windows worker for tests. */
import type { NodeSettings } from './settings.ts'

export const WINDOWS_SETTINGS: NodeSettings = {
  clusterCidr: '10.42.0.0/16',
  clusterDomain: 'cluster.local',
  serviceCidr: '10.43.0.0/16',
  dnsServiceIp: '10.43.0.10',
  cniComponent: 'flannel',
  cniMode: 'win-overlay',
  kubeletOptions: ['--v=2', '--cni-bin-dir=C:\\elsewhere'],
  kubeProxyOptions: ['--v=2', '--proxy-mode=kernelspace'],
  nodeIp: '10.1.2.3',
  nodeName: 'WIN-1',
}
