/** Runs `flanneld` on Windows, with the Host Compute Network service. */
import { mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

import type { ApiClient } from '#client/api-client.ts'
import { aborted } from '#lib/abort.ts'
import { ProgramError } from '#lib/program.ts'
import { startWindowsFlannel } from '#network/flannel/windows/flannel.ts'
import { parseWindowsNetConf } from '#network/flannel/windows/net-conf.ts'
import { hostComputeNetworks } from '#supervisor/windows/real/hcn.ts'
import { type WindowsAdapter, windowsAdapters } from '#supervisor/windows/real/windows-host.ts'

import { readNetConfAs } from '../net-conf-file.ts'
import type { FlanneldInvocation } from './flanneld.ts'

interface NodeIdentity {
  readonly client: ApiClient
  readonly node: string
}

/** Each check starts a program, so checks are less frequent than on Linux. */
const LEAST_MEND_SECONDS = 60

export async function runWindowsFlanneld(
  { flags, log, random, ...context }: FlanneldInvocation,
  { client, node }: NodeIdentity,
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<number> {
  const conf = await readNetConfAs(context, flags['net-config-path'], (text) => parseWindowsNetConf(text))
  const { address } = chooseAdapter(await windowsAdapters(), flags.iface)
  const subnetFile = resolve(context.cwd, flags['subnet-file'])
  await mkdir(dirname(subnetFile), { recursive: true })
  const flannel = startWindowsFlannel(
    {
      client,
      random,
      log,
      node,
      conf,
      hcn: hostComputeNetworks(),
      publicIps: { 4: flags['public-ip'] || address },
      // A virtual switch that replaces the adapter keeps its address but has another name.
      adapter: async () => chooseAdapter(await windowsAdapters(), [address]),
      hasAddress: async (wanted) => (await windowsAdapters()).some((adapter) => adapter.address === wanted),
      subnetFile,
      masquerades: flags['ip-masq'],
      annotationPrefix: flags['kube-annotation-prefix'],
      setsCondition: flags['set-node-network-unavailable'],
      repairMs: Math.max(LEAST_MEND_SECONDS, flags['iptables-resync']) * 1000,
    },
    closing,
  )
  await Promise.race([flannel.ready, aborted(signal)])
  if (!signal.aborted) log.info('Running backend.', { backend: conf.backend.type })
  await aborted(signal)
  return 0
}

/** By name or address, or else the one with the default route. Throws ProgramError. */
export function chooseAdapter(adapters: readonly WindowsAdapter[], iface: readonly string[]): WindowsAdapter {
  const named = iface
    .map((text) => adapters.find(({ name, address }) => name === text || address === text))
    .find((adapter) => adapter !== undefined)
  const chosen = iface.length > 0 ? named : adapters.find(({ gateway }) => gateway !== undefined)
  if (chosen === undefined)
    throw new ProgramError(
      `Failed to find any valid interface to use: ${iface.join(', ') || 'no interface has a default route'}`,
    )
  return chosen
}
