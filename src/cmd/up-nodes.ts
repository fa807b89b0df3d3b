/** What the nodes of `hyperkube up` are: asked for, or as they were, or as this machine can. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { type AskedRanges, nodeRanges, rangeFault } from '#cluster/asked-ranges.ts'
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

export interface Chosen extends RuntimeFile {
  readonly serviceCidr: string
  readonly nodes: number
  /** Why pods are not containers, when nobody said that they should not be. */
  readonly why?: string
}

interface Asked {
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

/** Now and whenever this cluster is started again. Throws ProgramError when it cannot be. */
export async function chooseNodes(invocation: Asked, dataDir: string): Promise<Chosen> {
  const { flags, env, changed, clock } = invocation
  const file = await readRuntimeFile(dataDir)
  // A cluster that is started again goes on as it was, unless something else is asked for.
  const nodes = changed.has('nodes') ? flags.nodes : (file?.nodes ?? flags.nodes)
  // Clusters from before there were containers, and snapshots, say nothing.
  const isOld = ['store.db', 'pki'].some((name) => existsSync(join(dataDir, name)))
  const before = file?.runtime ?? (isOld ? 'simulated' : undefined)
  const fault = flags.runtime === 'simulated' ? undefined : containerFault(await readAbility(env))
  const { runtime, why, fault: refusal } = chooseRuntime({ asked: flags.runtime, nodes, before, fault })
  if (refusal !== undefined)
    throw new ProgramError(`${refusal}; with --runtime simulated pods live and die without containers`)
  const { backend, ...asked } = await askedOf(invocation, file)
  const ranges =
    runtime === 'simulated'
      ? { podCidr: podCidrFor(nodes), serviceCidr: file?.serviceCidr ?? SERVICE_CIDR, ...asked }
      : await rangesFor({ file, isOld, dataDir, asked }, () => claimRanges(dataDir, clock.now()))
  const kept = runtime === 'containerd' && { nodes, ...(backend !== undefined && { backend }) }
  const written = { ...ranges, runtime, ...kept }
  await writeRuntimeFile(dataDir, written)
  return { ...written, nodes, ...(why !== undefined && { why }) }
}

/** What the command line says of addresses, and how packets get from node to node. Throws ProgramError. */
async function askedOf(
  invocation: Asked,
  before: RuntimeFile | undefined,
): Promise<AskedRanges & Pick<RuntimeFile, 'backend'>> {
  const { flags } = invocation
  const path = flags['net-config-path']
  // Who does not ask for it does not load it.
  const conf = path === '' ? undefined : await (await import('./net-conf-file.ts')).readNetConf(invocation, path)
  const networks = [conf?.network, conf?.ipv6Network].filter((one) => one !== undefined).join(',')
  const [podCidr, serviceCidr] = [flags['cluster-cidr'] || networks, flags['service-cluster-ip-range']]
  const asked = { ...(podCidr !== '' && { podCidr }), ...(serviceCidr !== '' && { serviceCidr }) }
  const fault = rangeFault(asked, before) ?? (await stubDomainFault(flags['stub-domains']))
  if (fault !== undefined) throw new ProgramError(fault)
  return { ...asked, ...(conf !== undefined && { backend: conf.backend }) }
}

async function stubDomainFault(list: readonly string[]): Promise<string | undefined> {
  if (list.length === 0) return undefined
  // Who does not ask for it does not load it.
  const wrong = (await import('#dns/stub-domains.ts')).stubFault(list)
  return wrong === undefined ? undefined : `--stub-domains is no "domain=address[:port]": "${wrong}"`
}

interface Known {
  readonly file: RuntimeFile | undefined
  readonly isOld: boolean
  readonly dataDir: string
  readonly asked: AskedRanges
}

/** What a cluster has it keeps: services and pods have their addresses of it. */
async function rangesFor(
  { file, isOld, dataDir, asked }: Known,
  claim: () => Promise<Ranges>,
): Promise<RuntimeFile & Ranges> {
  const { nodeCidr, serviceCidr = SERVICE_CIDR } = file ?? {}
  if (file !== undefined && nodeCidr !== undefined) return { ...file, nodeCidr, serviceCidr }
  const claimed = await claim()
  const { podCidr } = { ...claimed, ...asked, ...file }
  const nodes = nodeRanges(dataDir, claimed.nodeCidr, podCidr)
  const old = isOld && { serviceCidr: SERVICE_CIDR }
  return { runtime: 'containerd', ...claimed, ...asked, nodeCidr: nodes, ...old, ...file }
}

/** Where pods and further nodes reach the API server; none without containers. */
export function innerAddress({ runtime, nodeCidr }: Chosen): readonly string[] {
  return runtime === 'containerd' && nodeCidr !== undefined ? nodeAddresses(nodeCidr) : []
}

export function nodesText({ nodes: many, runtime, why }: Chosen): string {
  if (many === 0) return 'none'
  const others = many === 1 ? '' : `, and ${many - 1} beside it in network namespaces`
  if (runtime === 'containerd') return `this machine, with a containerd of its own${others}`
  return `${many} simulated: pods run without containers${why === undefined ? '' : ` (${why})`}`
}
