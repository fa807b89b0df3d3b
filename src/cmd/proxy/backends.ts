/** Rules for each family that the machine has, as the configuration wants them. */
import { networkInterfaces } from 'node:os'

import type { Node } from '#apis/core/v1.ts'
import { contains, parseCidr, parseIp } from '#lib/cidr.ts'
import type { Logger } from '#lib/log.ts'
import { applyNft, deleteNftTable } from '#lib/nft.ts'
import { ProgramError } from '#lib/program.ts'
import type { IpFamily } from '#model/services.ts'
import type { Backend } from '#proxy/backend.ts'
import type { ProxyConfiguration } from '#proxy/configuration.ts'
import { type LocalDetector, localByBridge, localByCidr, localByPrefix } from '#proxy/local-detector.ts'
import { createNftBackend } from '#proxy/nftables/backend.ts'
import type { TableSettings } from '#proxy/nftables/skeleton.ts'
import type { ProxyMeters } from '#proxy/proxy-metrics.ts'

import type { ProxyProgram } from './program.ts'

/** Upstream's name: whoever comes after either finds the other's. */
const TABLE = 'kube-proxy'
const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6']

/** Throws ProgramError when there can be none at all. */
export async function createBackends(
  { configuration, clock, log }: ProxyProgram,
  node: Node | undefined,
  meters: ProxyMeters,
): Promise<Backend[]> {
  const families = await familiesHere(log)
  return families.map((family) =>
    createNftBackend({
      clock,
      settings: { ...tableSettings(configuration, family, node), nodeIp: nodeIpsOf(node, family)[0] ?? '' },
      onCleanupFailure(error) {
        meters.family('kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total').labels(family).inc()
        log.error(error, 'Unable to delete stale chains; will retry later')
      },
    }),
  )
}

/** Removes all that is ours, of either mode. Returns the exit code. */
export async function cleanUp(log: Logger): Promise<number> {
  try {
    for (const word of ['ip', 'ip6'] as const) await deleteNftTable(word, TABLE)
    return 0
  } catch (error) {
    log.error(error, 'Rules could not be removed')
    return 1
  }
}

/** Throws ProgramError when there is none. */
async function familiesHere(log: Logger): Promise<IpFamily[]> {
  const found: IpFamily[] = []
  let why: unknown
  for (const family of FAMILIES) {
    const word = family === 'IPv4' ? 'ip' : 'ip6'
    const name = `${TABLE}-probe`
    try {
      await applyNft(
        `add table ${word} ${name}\nadd chain ${word} ${name} nat { type nat hook output priority -100 ; }\ndelete table ${word} ${name}\n`,
      )
      found.push(family)
    } catch (error) {
      why = error
      log.info('No rules for this family on this machine', { ipFamily: family, err: (error as Error).message })
    }
  }
  if (found.length === 0) throw new ProgramError(`no support for nftables: ${(why as Error).message}`)
  return found
}

function tableSettings(configuration: ProxyConfiguration, family: IpFamily, node: Node | undefined): TableSettings {
  const { masqueradeBit, masqueradeAll } = configuration.nftables
  return {
    family,
    table: TABLE,
    masqueradeMark: `0x${(2 ** masqueradeBit).toString(16).padStart(8, '0')}`,
    masqueradeAll,
    detector: detectorOf(configuration, family, node),
    nodePortIps: nodePortIpsOf(configuration.nodePortAddresses, family, node),
    serviceCidrs: [],
  }
}

function detectorOf(
  configuration: ProxyConfiguration,
  family: IpFamily,
  node: Node | undefined,
): LocalDetector | undefined {
  const { detectLocalMode, detectLocal, clusterCIDR } = configuration
  const ofFamily = (cidrs: readonly string[]): string | undefined =>
    cidrs.find((cidr) => cidr !== '' && cidr.includes(':') === (family === 'IPv6'))
  const byCidr = (cidr: string | undefined): LocalDetector | undefined =>
    cidr === undefined ? undefined : localByCidr(cidr)
  switch (detectLocalMode) {
    case 'BridgeInterface':
      return localByBridge(detectLocal.bridgeInterface)
    case 'InterfaceNamePrefix':
      return localByPrefix(detectLocal.interfaceNamePrefix)
    case 'NodeCIDR':
      return byCidr(ofFamily(node?.spec.podCIDRs ?? []))
    default:
      return byCidr(ofFamily(clusterCIDR.split(',')))
  }
}

function nodeIpsOf(node: Node | undefined, family: IpFamily): string[] {
  const all = node?.status.addresses ?? []
  const inOrder = ['InternalIP', 'ExternalIP'].flatMap((type) => all.filter((one) => one.type === type))
  return inOrder.map(({ address }) => address).filter((one) => one.includes(':') === (family === 'IPv6'))
}

/** Undefined: at all addresses of the node. */
function nodePortIpsOf(wanted: readonly string[], family: IpFamily, node: Node | undefined): string[] | undefined {
  if (wanted.length === 0) return undefined
  if (wanted[0] === 'primary') return nodeIpsOf(node, family).slice(0, 1)
  const ranges = wanted.flatMap((text) => parseCidr(text, { sloppy: true }) ?? [])
  const own = ranges.filter((range) => (range.family === 6) === (family === 'IPv6'))
  if (own.length === 0 || own.some(({ prefixLength }) => prefixLength === 0)) return own.length === 0 ? [] : undefined
  const here = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
  return here.flatMap(({ address, internal }) => {
    const ip = parseIp(address)
    return !internal && ip !== undefined && own.some((range) => contains(range, ip)) ? [address] : []
  })
}
