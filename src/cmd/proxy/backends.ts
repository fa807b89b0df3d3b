/** Creates kube-proxy's rule backends for each IP family of the machine, as configured. */
import type { Node } from '#apis/core/v1.ts'
import type { Logger } from '#lib/log/log.ts'
import { IptablesError } from '#lib/net/iptables.ts'
import { applyNft, deleteNftTable, NftError } from '#lib/net/nft.ts'
import { ProgramError } from '#lib/program.ts'
import type { IpFamily } from '#model/services.ts'
import type { Backend } from '#proxy/backend.ts'
import type { ProxyConfiguration } from '#proxy/configuration.ts'
import { removeIptablesRules } from '#proxy/iptables/backend.ts'
import { createNftBackend } from '#proxy/nftables/backend.ts'
import type { TableSettings } from '#proxy/nftables/skeleton.ts'
import type { ProxyMeters } from '#proxy/proxy-metrics.ts'

import { createIptablesBackends } from './iptables-backends.ts'
import { detectorOf, FAMILIES, nodeIpsOf, nodePortIpsOf } from './node-facts.ts'
import type { ProxyMode, ProxyProgram } from './program.ts'

/** Upstream's table name, so that either program replaces the other's rules. */
const TABLE = 'kube-proxy'

/** Throws ProgramError if no family is supported. */
export async function createBackends(
  program: ProxyProgram,
  node: Node | undefined,
  meters: ProxyMeters,
): Promise<Backend[]> {
  const { configuration, clock, log, mode } = program
  if (mode === 'iptables') return createIptablesBackends(program, node)
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

/** Removes our rules of these modes. Returns true if all are removed. */
export async function cleanUp(modes: readonly ProxyMode[], log: Logger): Promise<boolean> {
  const outcomes = await Promise.all(modes.map((mode) => REMOVE[mode](log)))
  return outcomes.every(Boolean)
}

const REMOVE: Readonly<Record<ProxyMode, (log: Logger) => Promise<boolean>>> = {
  nftables: (log) =>
    removing(log, async () => {
      for (const word of ['ip', 'ip6'] as const) await deleteNftTable(word, TABLE)
    }),
  async iptables(log) {
    const outcomes: boolean[] = []
    // A machine may support only one IP family.
    for (const family of FAMILIES) outcomes.push(await removing(log, () => removeIptablesRules({ family })))
    return outcomes.every(Boolean)
  },
}

async function removing(log: Logger, remove: () => Promise<void>): Promise<boolean> {
  try {
    await remove()
    return true
  } catch (error) {
    // Without the program there can be no rules of it.
    if ((error instanceof IptablesError || error instanceof NftError) && error.code === 'missing') return true
    log.error(error, 'Failed to remove kube-proxy rules')
    return false
  }
}

/** Throws ProgramError if no family is supported. */
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
      log.info('Skipping IP family that this machine does not support', {
        ipFamily: family,
        err: (error as Error).message,
      })
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
    nodePortIps: nodePortIpsOf(configuration.nodePortAddresses, family, { node }),
    serviceCidrs: [],
  }
}
