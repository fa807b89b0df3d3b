/**
 * Creates the rule backends of kube-proxy's mode iptables for each supported IP family, and sets the kernel parameters
 * they need.
 */
import { readFile } from 'node:fs/promises'

import type { Node } from '#apis/core/v1.ts'
import { contains, parseCidr, parseIp } from '#lib/net/cidr.ts'
import { type IptablesFamily, iptablesVersion, listIptables } from '#lib/net/iptables.ts'
import { ProgramError } from '#lib/program.ts'
import type { Backend } from '#proxy/backend.ts'
import { createIptablesBackend } from '#proxy/iptables/backend.ts'
import type { IptablesSettings } from '#proxy/iptables/skeleton.ts'
import { setSysctl } from '#proxy/system-settings.ts'

import { detectorOf, FAMILIES, nodeIpsOf, nodePortIpsOf } from './node-facts.ts'
import type { ProxyProgram } from './program.ts'

const ROUTE_LOCALNET = '/proc/sys/net/ipv4/conf/all/route_localnet'
const TCP_BE_LIBERAL = '/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal'

/** Throws ProgramError if no family is supported. */
export async function createIptablesBackends(program: ProxyProgram, node: Node | undefined): Promise<Backend[]> {
  const families = await familiesHere(program)
  const isTcpLiberal = await isOn(TCP_BE_LIBERAL)
  if (isTcpLiberal) program.log.info('nf_conntrack_tcp_be_liberal set, not installing DROP rules for INVALID packets')
  const shared = { isTcpLiberal, node }
  return Promise.all(
    families.map(async (family) => createIptablesBackend({ settings: await settingsOf(program, family, shared) })),
  )
}

/** Runs first; `--init-only` does only this for the mode. Throws ProgramError. */
export async function allowLocalhostNodePorts({
  configuration,
  log,
}: Pick<ProxyProgram, 'configuration' | 'log'>): Promise<void> {
  if (!servesLocalhost(configuration)) return
  log.info(
    'Setting route_localnet=1 to allow node-ports on localhost; to change this either disable iptables.localhostNodePorts (--iptables-localhost-nodeports) or set nodePortAddresses (--nodeport-addresses) to filter loopback addresses',
  )
  if (!(await setSysctl(ROUTE_LOCALNET, 1, { isAtLeast: false, log })))
    throw new ProgramError(`can't set sysctl net/ipv4/conf/all/route_localnet to 1`)
}

/** True if node ports are served at 127.0.0.1. */
function servesLocalhost({ iptables, nodePortAddresses }: ProxyProgram['configuration']): boolean {
  if (!iptables.localhostNodePorts) return false
  const loopback = parseIp('127.0.0.1')
  const ranges = nodePortAddresses.flatMap((text) => parseCidr(text, { sloppy: true }) ?? [])
  const own = ranges.filter(({ family }) => family === 4)
  // Without an address of the family, all its addresses match.
  if (own.length === 0) return nodePortAddresses[0] !== 'primary'
  return loopback !== undefined && own.some((range) => contains(range, loopback))
}

async function settingsOf(
  { configuration }: ProxyProgram,
  family: IptablesFamily,
  { isTcpLiberal, node }: { readonly isTcpLiberal: boolean; readonly node: Node | undefined },
): Promise<IptablesSettings> {
  const { masqueradeBit, masqueradeAll } = configuration.iptables
  const localhostNodePorts = family === 'IPv4' && servesLocalhost(configuration)
  return {
    family,
    masqueradeMark: `0x${(2 ** masqueradeBit).toString(16).padStart(6, '0')}`,
    masqueradeAll,
    detector: detectorOf(configuration, family, node),
    nodeIp: nodeIpsOf(node, family)[0] ?? '',
    nodePortIps: nodePortIpsOf(configuration.nodePortAddresses, family, { node, loopback: localhostNodePorts }),
    localhostNodePorts,
    isTcpLiberal,
    hasRandomFully: isSince(await iptablesVersion({ family }), [1, 6, 2]),
  }
}

/** Throws ProgramError if no family is supported. */
async function familiesHere({ log }: ProxyProgram): Promise<IptablesFamily[]> {
  const found: IptablesFamily[] = []
  let why: unknown
  for (const family of FAMILIES) {
    try {
      await listIptables('nat', 'POSTROUTING', { family })
      found.push(family)
    } catch (error) {
      why = error
      log.info('Skipping IP family that this machine does not support', {
        ipFamily: family,
        err: (error as Error).message,
      })
    }
  }
  if (found.length === 0) throw new ProgramError(`no support for iptables: ${(why as Error).message}`)
  return found
}

function isSince(version: string, least: readonly number[]): boolean {
  const parts = version.split('.').map(Number)
  const at = least.findIndex((wanted, index) => (parts[index] ?? 0) !== wanted)
  return at < 0 || (parts[at] ?? 0) > (least[at] ?? 0)
}

async function isOn(file: string): Promise<boolean> {
  return Number(await readFile(file, 'utf8').catch(() => '0')) !== 0
}
