/** Chooses the nodes of `hyperkube up`: from flags, from the last start, or from what the machine supports. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { nodeRanges, rangeFault, type RequestedRanges } from '#cluster/address-ranges.ts'
import { claimRanges } from '#cluster/range-claims.ts'
import { chooseRuntime, containerFault, readAbility } from '#cluster/runtime-choice.ts'
import {
  nodeAddresses,
  type Ranges,
  readRuntimeFile,
  type RuntimeFile,
  writeRuntimeFile,
} from '#cluster/runtime-file.ts'
import { podCidrFor, SERVICE_CIDR } from '#cluster/settings.ts'
import type { Clock } from '#lib/clock.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'

export interface NodeChoice extends RuntimeFile {
  readonly serviceCidr: string
  readonly nodes: number
  /** The reason for simulated pods, if the user did not request them. */
  readonly why?: string
}

interface NodeChoiceInput {
  readonly flags: {
    readonly runtime: 'auto' | 'containerd' | 'simulated'
    readonly nodes: number
    readonly 'cluster-cidr': string
    readonly 'service-cluster-ip-range': string
    readonly 'net-config-path': string
    readonly 'stub-domains': readonly string[]
  }
  readonly readFile: ProgramContext['readFile']
  readonly env: ProgramContext['env']
  readonly changed: ReadonlySet<string>
  readonly clock: Clock
}

/** The choice for this and later starts of the cluster. Throws ProgramError if it is not possible. */
export async function chooseNodes(invocation: NodeChoiceInput, dataDir: string): Promise<NodeChoice> {
  const { flags, env, changed, clock } = invocation
  const file = await readRuntimeFile(dataDir)
  // A restarted cluster keeps its settings unless flags change them.
  const nodes = changed.has('nodes') ? flags.nodes : (file?.nodes ?? flags.nodes)
  // Older clusters and restored snapshots have no runtime file.
  const isOld = ['store.db', 'pki'].some((name) => existsSync(join(dataDir, name)))
  const before = file?.runtime ?? (isOld ? 'simulated' : undefined)
  const fault = flags.runtime === 'simulated' ? undefined : containerFault(await readAbility(env))
  const { runtime, why, fault: refusal } = chooseRuntime({ requested: flags.runtime, nodes, before, fault })
  if (refusal !== undefined) throw new ProgramError(`${refusal}; --runtime simulated runs pods without containers`)
  const { backend, ...requested } = await requestedNetwork(invocation, file)
  const ranges =
    runtime === 'simulated'
      ? { podCidr: podCidrFor(nodes), serviceCidr: file?.serviceCidr ?? SERVICE_CIDR, ...requested }
      : await rangesFor({ file, isOld, dataDir, requested }, () => claimRanges(dataDir, clock.now()))
  const kept = runtime === 'containerd' && { nodes, ...(backend !== undefined && { backend }) }
  const written = { ...ranges, runtime, ...kept }
  await writeRuntimeFile(dataDir, written)
  return { ...written, nodes, ...(why !== undefined && { why }) }
}

/** The address ranges and the network backend from the command line. Throws ProgramError. */
async function requestedNetwork(
  invocation: NodeChoiceInput,
  before: RuntimeFile | undefined,
): Promise<RequestedRanges & Pick<RuntimeFile, 'backend'>> {
  const { flags } = invocation
  const path = flags['net-config-path']
  // Loaded only if the flag is set.
  const conf = path === '' ? undefined : await (await import('../net-conf-file.ts')).readNetConf(invocation, path)
  const networks = [conf?.network, conf?.ipv6Network].filter((one) => one !== undefined).join(',')
  const [podCidr, serviceCidr] = [flags['cluster-cidr'] || networks, flags['service-cluster-ip-range']]
  const requested = { ...(podCidr !== '' && { podCidr }), ...(serviceCidr !== '' && { serviceCidr }) }
  const fault = rangeFault(requested, before) ?? (await stubDomainFault(flags['stub-domains']))
  if (fault !== undefined) throw new ProgramError(fault)
  return { ...requested, ...(conf !== undefined && { backend: conf.backend }) }
}

async function stubDomainFault(list: readonly string[]): Promise<string | undefined> {
  if (list.length === 0) return undefined
  // Loaded only if the flag is set.
  const wrong = (await import('#dns/stub-domains.ts')).stubFault(list)
  return wrong === undefined ? undefined : `--stub-domains is not of the form "domain=address[:port]": "${wrong}"`
}

interface RangeInput {
  readonly file: RuntimeFile | undefined
  readonly isOld: boolean
  readonly dataDir: string
  readonly requested: RequestedRanges
}

/** A cluster keeps its ranges, because Services and pods have addresses in them. */
async function rangesFor(
  { file, isOld, dataDir, requested }: RangeInput,
  claim: () => Promise<Ranges>,
): Promise<RuntimeFile & Ranges> {
  const { nodeCidr, serviceCidr = SERVICE_CIDR } = file ?? {}
  if (file !== undefined && nodeCidr !== undefined) return { ...file, nodeCidr, serviceCidr }
  const claimed = await claim()
  const { podCidr } = { ...claimed, ...requested, ...file }
  const nodes = nodeRanges(dataDir, claimed.nodeCidr, podCidr)
  const old = isOld && { serviceCidr: SERVICE_CIDR }
  return { runtime: 'containerd', ...claimed, ...requested, nodeCidr: nodes, ...old, ...file }
}

/** The addresses at which pods and additional nodes reach the API server; none without containers. */
export function innerAddress({ runtime, nodeCidr }: NodeChoice): readonly string[] {
  return runtime === 'containerd' && nodeCidr !== undefined ? nodeAddresses(nodeCidr) : []
}

export function nodesText({ nodes: many, runtime, why }: NodeChoice): string {
  if (many === 0) return 'none'
  const others = many === 1 ? '' : `, and ${many - 1} beside it in network namespaces`
  if (runtime === 'containerd') return `this machine, with a private containerd${others}`
  return `${many} simulated: pods run without containers${why === undefined ? '' : ` (${why})`}`
}
