/** Defines how each process of a worker node is started: preparation, flags, and what follows its start. */
import { repairCloudRoutes } from './adapters.ts'
import { completeCloudConfig } from './cloud.ts'
import type { Host } from './host.ts'
import { mergeOptions, splitOptions } from './options.ts'
import { CrashError } from './outcome.ts'
import { configurePodNetwork, untilPodNetwork } from './pod-network.ts'
import type { ProcessName } from './process-names.ts'
import { podNetworkKind } from './settings.ts'
import { launchUntilItStays, pause, restartProxy, untilThere, type Worker } from './worker.ts'

/** flanneld starts with kubelet, whose registration allocates the pod range. */
async function startKubelet(worker: Worker): Promise<void> {
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

/** These flags override all others, because the node needs them. */
function kubeletFlags({ host, layout }: Worker): string[] {
  // Current kubelets lack the flags below, and register as schedulable anyway.
  if (host.system === 'linux') return []
  const conf = layout.cniConf.slice(0, layout.cniConf.lastIndexOf('\\'))
  return [
    '--register-schedulable=true',
    '--network-plugin=cni',
    `--cni-bin-dir=${layout.cniBin}`,
    `--cni-conf-dir=${conf}`,
  ]
}

async function startFlanneld(worker: Worker): Promise<void> {
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

async function startKubeProxy(worker: Worker): Promise<void> {
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

/** Existing rules stay in force while it does not run. */
async function startNetworkPolicies(worker: Worker): Promise<void> {
  const { host, layout, settings } = worker
  if (host.system === 'windows') throw new CrashError('Network policies are enforced only on Linux nodes')
  await host.processes.kill('kube-network-policies')
  await untilThere(worker, layout.program('kube-network-policies'))
  const args = settings.networkPolicyOptions ?? []
  await launchUntilItStays(worker, { name: 'kube-network-policies', args })
}

/** It leaves its rules to the next instance. If it is disabled, the rules are removed too. There may be none. */
export async function endNetworkPolicies({ system, processes, layout }: Host): Promise<void> {
  const name = 'kube-network-policies'
  if (system === 'windows' || (await processes.find(name)).length === 0) return
  await processes.kill(name)
  await processes.output(layout.program(name), ['--cleanup'])
}

async function customOptions({ host }: Worker, of: 'KUBELET' | 'KUBEPROXY'): Promise<string[]> {
  return splitOptions((await host.environment.get(`CATTLE_CUSTOMIZE_${of}_OPTIONS`)) ?? '')
}

export const STARTS: Readonly<Record<ProcessName, (worker: Worker) => Promise<void>>> = {
  kubelet: startKubelet,
  flanneld: startFlanneld,
  'kube-proxy': startKubeProxy,
  'kube-network-policies': startNetworkPolicies,
}
