/** Rules for each family that the machine has, as the configuration wants them. */
import type { Node } from '#apis/core/v1.ts'
import { IptablesError } from '#lib/iptables.ts'
import type { Logger } from '#lib/log.ts'
import { applyNft, deleteNftTable, NftError } from '#lib/nft.ts'
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

/** Upstream's name: whoever comes after either finds the other's. */
const TABLE = 'kube-proxy'

/** Throws ProgramError when there can be none at all. */
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

/** Removes what is ours, of these modes. Returns whether all of it has gone. */
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
    // A machine may have the programs for one family only.
    for (const family of FAMILIES) outcomes.push(await removing(log, () => removeIptablesRules({ family })))
    return outcomes.every(Boolean)
  },
}

async function removing(log: Logger, remove: () => Promise<void>): Promise<boolean> {
  try {
    await remove()
    return true
  } catch (error) {
    // Where the program is missing there is nothing that it could have made.
    if ((error instanceof IptablesError || error instanceof NftError) && error.code === 'missing') return true
    log.error(error, 'Rules could not be removed')
    return false
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
    nodePortIps: nodePortIpsOf(configuration.nodePortAddresses, family, { node }),
    serviceCidrs: [],
  }
}
