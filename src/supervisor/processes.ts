/** How each of the three is started: what goes before, with which flags, and what follows. */
import { repairCloudRoutes } from './adapters.ts'
import { completeCloudConfig } from './cloud.ts'
import type { ProcessName } from './host.ts'
import { mergeOptions, splitOptions } from './options.ts'
import { configurePodNetwork, untilPodNetwork } from './pod-network.ts'
import { podNetworkKind } from './settings.ts'
import { launchUntilItStays, pause, restartProxy, untilThere, type Worker } from './worker.ts'

/** flanneld is started with kubelet, whose registration gives the node its range of addresses. */
export async function startKubelet(worker: Worker): Promise<void> {
  const { host, layout, settings } = worker
  await host.processes.kill('kubelet')
  await untilThere(worker, layout.program('kubelet'))
  await configurePodNetwork(worker)
  if (settings.cloudConfig !== undefined)
    await host.files.write(layout.cloudConfig, await completeCloudConfig(worker, settings.cloudConfig))
  if (settings.registryConfig !== undefined) await host.files.write(layout.registryConfig, settings.registryConfig)
  const args = mergeOptions(kubeletFlags(worker), await customOptions(worker, 'KUBELET'), settings.kubeletOptions)
  await launchUntilItStays(worker, { name: 'kubelet', args })
  await startFlanneld(worker)
}

/** Nobody's options beat these: without them the node is none. */
function kubeletFlags({ host, layout }: Worker): string[] {
  // Kubelets of today know none of those below, and register schedulable anyway.
  if (host.system === 'linux') return []
  const conf = layout.cniConf.slice(0, layout.cniConf.lastIndexOf('\\'))
  return [
    '--register-schedulable=true',
    '--network-plugin=cni',
    `--cni-bin-dir=${layout.cniBin}`,
    `--cni-conf-dir=${conf}`,
  ]
}

export async function startFlanneld(worker: Worker): Promise<void> {
  const { host, layout, settings } = worker
  await host.processes.kill('flanneld')
  await untilThere(worker, layout.program('flanneld'))
  const args = [
    `--kubeconfig-file=${layout.nodeKubeconfig}`,
    `--iface=${settings.nodeIp}`,
    '--ip-masq',
    '--kube-subnet-mgr',
    '--iptables-forward-rules=false',
    ...(host.system === 'linux' ? [`--net-config-path=${layout.netConf}`, `--subnet-file=${layout.subnetFile}`] : []),
  ]
  const name = (await host.environment.get('NODE_NAME')) ?? settings.nodeName
  await launchUntilItStays(worker, { name: 'flanneld', args, env: { NODE_NAME: name } })
  await untilPodNetwork(worker)
  await restartProxy(worker)
  await repairCloudRoutes(worker)
}

export async function startKubeProxy(worker: Worker): Promise<void> {
  const { host, layout, settings, timings } = worker
  const kind = podNetworkKind(settings)
  await host.processes.kill('kube-proxy')
  await pause(worker, kind.type === 'overlay' ? timings.settleMs.overlay : timings.settleMs.other)
  await untilThere(worker, layout.program('kube-proxy'))
  await host.network.pods.removeServicePolicies()
  const custom = await customOptions(worker, 'KUBEPROXY')
  const args = mergeOptions([`--cluster-cidr=${settings.clusterCidr}`], custom, settings.kubeProxyOptions)
  await launchUntilItStays(worker, { name: 'kube-proxy', args, env: { KUBE_NETWORK: kind.name } })
  await restartProxy(worker)
}

async function customOptions({ host }: Worker, of: 'KUBELET' | 'KUBEPROXY'): Promise<string[]> {
  return splitOptions((await host.environment.get(`CATTLE_CUSTOMIZE_${of}_OPTIONS`)) ?? '')
}

export const STARTS: Readonly<Record<ProcessName, (worker: Worker) => Promise<void>>> = {
  kubelet: startKubelet,
  flanneld: startFlanneld,
  'kube-proxy': startKubeProxy,
}
