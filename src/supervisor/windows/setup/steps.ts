/**
 * Lists the set-up steps of a Windows worker. The kubelet comes first, to register the node and get a pod range. Then a
 * network creates the virtual switch, before anything depends on connections. flanneld follows, because kube-proxy
 * needs its network.
 */
import { createHnsNetwork, type HnsNetwork } from '#lib/hns/hns.ts'

import type { PodNetwork } from '../../host.ts'
import { RetryError } from '../../outcome.ts'
import type { Step } from '../../steps.ts'
import type { FirewallRule, ServicePlan } from '../windows-host.ts'
import { management, pause, type SetupContext, until } from './context.ts'
import { CREDENTIAL_STEPS } from './credentials.ts'
import {
  cniDocument,
  externalNetwork,
  flanneldFlags,
  kubeletFlags,
  kubeProxyFlags,
  netConfDocument,
  reservationDocument,
} from './documents.ts'
import { networkKind, usesDocker } from './settings.ts'
import { SOFTWARE_STEPS } from './software.ts'

/** The pause after a virtual switch was created. */
const SWITCH_MS = 20_000

type SetupStep = Step<SetupContext>

/** A file with this content. */
function file(
  name: string,
  path: (context: SetupContext) => string,
  text: (context: SetupContext) => Promise<string>,
): SetupStep {
  return {
    name,
    isDone: async (context) => (await context.host.files.read(path(context))) === (await text(context)),
    take: async (context) => context.host.files.write(path(context), await text(context)),
    undo: (context) => context.host.files.remove(path(context)),
  }
}

function firewall(rule: FirewallRule, isWanted: (context: SetupContext) => boolean = () => true): SetupStep {
  return {
    name: `${rule.protocol} ${rule.port} through the firewall`,
    isDone: async (context) => !isWanted(context) || (await context.host.firewall.isAllowed(rule.name)),
    take: ({ host }) => host.firewall.allow(rule),
    undo: ({ host }) => host.firewall.remove(rule.name),
  }
}

type Program = Pick<ServicePlan, 'program' | 'args' | 'env'>

/** A service with its settings recorded in a file, whose content decides whether it is recreated. */
function service(name: string, log: string, program: (context: SetupContext) => Promise<Program>): SetupStep {
  const planOf = async (context: SetupContext): Promise<ServicePlan> => ({
    name,
    description: `${log} of Kubernetes, set up by hyperkube`,
    wrapper: context.paths.wrapper(name),
    logFile: `${context.paths.logs}\\${log}\\${log}svc.log`,
    ...(await program(context)),
  })
  return {
    name: `service ${name}`,
    async isDone(context) {
      const { files, services } = context.host
      const isThere = (await services.state(name)) !== undefined
      const kept = isThere ? await files.read(context.paths.serviceFile(name)) : undefined
      return kept !== undefined && kept === JSON.stringify(await planOf(context))
    },
    async take(context) {
      const { files, services } = context.host
      const plan = await planOf(context)
      await services.install(plan)
      await files.write(context.paths.serviceFile(name), JSON.stringify(plan))
    },
    async undo(context) {
      const { files, services } = context.host
      await services.remove(name)
      await files.remove(context.paths.serviceFile(name))
      await files.remove(context.paths.wrapper(name))
      await files.remove(`${context.paths.wrapper(name)}.txt`)
    },
  }
}

interface StartTiming {
  /** The time limit of a start, and the interval of repeated commands. */
  readonly forMs: number
  readonly everyMs: number
}

function running(name: string, { forMs, everyMs }: StartTiming): SetupStep {
  return {
    name: `${name} runs`,
    isDone: async ({ host }) => (await host.services.state(name)) === 'running',
    take: (context) =>
      until(context, { what: `The service ${name} did not start`, everyMs, forMs }, async () => {
        if ((await context.host.services.state(name)) === 'running') return true
        await context.host.services.start(name)
        return (await context.host.services.state(name)) === 'running'
      }),
    async undo({ host }) {
      if ((await host.services.state(name)) === 'running') await host.services.stop(name)
    },
  }
}

async function findNetwork({ host }: SetupContext, name: string): Promise<PodNetwork | undefined> {
  return (await host.network.pods.list()).find((network) => network.name === name)
}

async function removeNetwork(context: SetupContext, name: string): Promise<void> {
  const found = await findNetwork(context, name)
  if (found !== undefined) await context.host.network.pods.remove(found.id)
}

const isOverlay = ({ settings }: SetupContext): boolean => settings.networkMode === 'overlay'

async function nodeOf(context: SetupContext): Promise<Parameters<typeof flanneldFlags>[0]> {
  const { settings, paths, host } = context
  return { settings, paths, name: host.machineName, address: (await management(context)).address }
}

/** The address in a source VIP file; undefined without one. */
async function sourceVipOf({ host, paths }: SetupContext): Promise<string | undefined> {
  const text = await host.files.read(paths.sourceVip)
  if (text === undefined) return undefined
  const { ip4, ips } = JSON.parse(text) as {
    readonly ip4?: { readonly ip?: string }
    readonly ips?: readonly { readonly address?: string }[]
  }
  return (ip4?.ip ?? ips?.[0]?.address)?.split('/')[0]
}

function cniVariables(command: string, folder: string): Record<string, string> {
  const placeholders = { CNI_CONTAINERID: 'dummy', CNI_NETNS: 'dummy', CNI_IFNAME: 'dummy' }
  return { CNI_COMMAND: command, ...placeholders, CNI_PATH: folder }
}

const NETWORK_STEPS: readonly SetupStep[] = [
  {
    name: 'network External',
    isDone: async (context) => (await findNetwork(context, 'External')) !== undefined,
    async take(context) {
      const { adapter } = await management(context)
      await createHnsNetwork(context.host.hns, externalNetwork(context.settings, adapter) as Omit<HnsNetwork, 'ID'>)
      await pause(context, SWITCH_MS)
    },
    undo: (context) => removeNetwork(context, 'External'),
  },
  running('FlannelD', { forMs: 30_000, everyMs: 1000 }),
  {
    name: 'network of pods',
    async isDone(context) {
      const { name, type } = networkKind(context.settings)
      return (await findNetwork(context, name))?.type === type
    },
    async take(context) {
      const { name, type } = networkKind(context.settings)
      const wait = { what: `flanneld created no network ${name}`, everyMs: 5000, forMs: 60_000 }
      await until(context, wait, async () => (await findNetwork(context, name)) !== undefined)
      const found = await findNetwork(context, name)
      if (found?.type === type) return
      await context.host.services.stop('FlannelD')
      await removeNetwork(context, name)
      throw new RetryError(`The network ${name} was of type ${found?.type}, not ${type}, and was removed: try again`)
    },
    undo: (context) => removeNetwork(context, networkKind(context.settings).name),
  },
  {
    name: 'source VIP',
    isDone: async (context) => !isOverlay(context) || (await sourceVipOf(context)) !== undefined,
    async take(context) {
      const { host, paths, settings } = context
      const { name } = networkKind(settings)
      const prefix = (await findNetwork(context, name))?.prefix
      if (prefix === undefined) throw new RetryError(`The network ${name} has no range of addresses yet`)
      const input = JSON.stringify(reservationDocument(settings, prefix))
      const hostLocal = (command: 'ADD' | 'DEL'): Promise<string> =>
        host.processes.output(`${paths.cni}\\host-local.exe`, [], { input, env: cniVariables(command, paths.cni) })
      // The record of an interrupted run, which would block the address.
      await hostLocal('DEL')
      await host.files.write(paths.sourceVip, await hostLocal('ADD'))
    },
    async undo({ host, paths }) {
      await host.files.remove(paths.sourceVip)
      await host.files.empty(paths.reservations)
      await host.files.remove(paths.reservations)
    },
  },
]

/** In order; undone in reverse order. */
export const SETUP_STEPS: readonly SetupStep[] = [
  ...CREDENTIAL_STEPS,
  ...SOFTWARE_STEPS,
  file(
    'net-conf.json',
    ({ paths }) => paths.netConf,
    async ({ settings }) => JSON.stringify(netConfDocument(settings)),
  ),
  file(
    'cni.conf',
    ({ paths }) => paths.cniConf,
    async (context) => JSON.stringify(cniDocument(context.settings, await management(context))),
  ),
  service('FlannelD', 'flanneld', async (context) => {
    const { ownFlanneld } = context.settings
    const program = ownFlanneld ?? { program: context.paths.flanneld, args: [] }
    const args = [...program.args, ...flanneldFlags(await nodeOf(context))]
    return { program: program.program, args, env: { NODE_NAME: context.host.machineName } }
  }),
  service('Kubelet', 'kubelet', async (context) => ({
    program: `${context.paths.bin}\\kubelet.exe`,
    args: kubeletFlags(await nodeOf(context), await context.cluster.dnsServiceIp()),
    env: {},
  })),
  firewall({ name: 'Kubelet allow 10250', protocol: 'TCP', port: 10250 }),
  running('Kubelet', { forMs: 5000, everyMs: 1000 }),
  {
    name: 'registration of the node',
    isDone: ({ cluster, host }) => cluster.isNodeThere(host.machineName),
    take: (context) =>
      until(context, { what: 'kubelet did not register the node', everyMs: 1000, forMs: 10_000 }, () =>
        context.cluster.isNodeThere(context.host.machineName),
      ),
    // kubelet has stopped by then; otherwise it would register the node again.
    undo: ({ cluster, host }) => cluster.deleteNode(host.machineName),
  },
  firewall({ name: 'Overlay allow 4789', protocol: 'UDP', port: 4789 }, isOverlay),
  ...NETWORK_STEPS,
  service('Kubeproxy', 'kube-proxy', async (context) => ({
    program: `${context.paths.bin}\\kube-proxy.exe`,
    args: kubeProxyFlags(await nodeOf(context), isOverlay(context) ? await sourceVipOf(context) : undefined),
    env: { KUBE_NETWORK: networkKind(context.settings).name },
  })),
  running('Kubeproxy', { forMs: 5000, everyMs: 1000 }),
  // Programs written for other systems require this file; its content is irrelevant.
  file(
    'resolv.conf',
    ({ paths }) => paths.resolvConf,
    async () => '',
  ),
]

/** Only the containers that kubelet created. */
export async function removeContainers({ host, settings }: SetupContext): Promise<void> {
  if (!usesDocker(settings)) return
  const docker = (...args: readonly string[]): Promise<string> => host.processes.output('docker', args)
  const ids = (await docker('ps', '-aq', '--filter', 'label=io.kubernetes.pod.uid'))
    .split(/\s+/)
    .filter((id) => id !== '')
  if (ids.length > 0) await docker('rm', '-f', ...ids)
}
