/** Applies kube-proxy's machine settings: conntrack limits and timeouts, and the OOM score. */
import { readFile, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'

import { durationMs } from '#lib/go/duration.ts'
import type { Logger } from '#lib/log/log.ts'

import type { ProxyConfiguration } from './configuration.ts'

const CONNTRACK = '/proc/sys/net/netfilter'

/** Sets conntrack limits and timeouts of this network namespace. A container may lack the permission. */
export async function applyConntrackSettings(
  conntrack: ProxyConfiguration['conntrack'],
  log: Logger | undefined,
): Promise<void> {
  const { maxPerCore, min, tcpBeLiberal } = conntrack
  const seconds = (text: string): number => Math.floor(durationMs(text) / 1000)
  const most = Math.max(maxPerCore * availableParallelism(), min)
  const wanted: [file: string, value: number, isAtLeast?: boolean][] = [
    ...(maxPerCore > 0 ? [[`${CONNTRACK}/nf_conntrack_max`, most, true] as [string, number, boolean]] : []),
    [`${CONNTRACK}/nf_conntrack_tcp_timeout_established`, seconds(conntrack.tcpEstablishedTimeout)],
    [`${CONNTRACK}/nf_conntrack_tcp_timeout_close_wait`, seconds(conntrack.tcpCloseWaitTimeout)],
    [`${CONNTRACK}/nf_conntrack_tcp_be_liberal`, tcpBeLiberal ? 1 : 0],
    [`${CONNTRACK}/nf_conntrack_udp_timeout`, seconds(conntrack.udpTimeout)],
    [`${CONNTRACK}/nf_conntrack_udp_timeout_stream`, seconds(conntrack.udpStreamTimeout)],
  ]
  // 0 means unset.
  for (const [file, value, isAtLeast] of wanted)
    if (value > 0) await setSysctl(file, value, { isAtLeast: isAtLeast === true, log })
}

export async function applySystemSettings({ conntrack, oomScoreAdj }: ProxyConfiguration, log: Logger): Promise<void> {
  await applyConntrackSettings(conntrack, log)
  await writeFile('/proc/self/oom_score_adj', String(oomScoreAdj)).catch((error: unknown) =>
    log.info('Failed to apply OOMScore', { err: (error as Error).message }),
  )
}

/** Logs a failure. Returns whether the value is set. */
export async function setSysctl(
  file: string,
  value: number,
  { isAtLeast, log }: { readonly isAtLeast: boolean; readonly log: Logger | undefined },
): Promise<boolean> {
  try {
    const now = Number(await readFile(file, 'utf8'))
    if (isAtLeast ? now >= value : now === value) return true
    await writeFile(file, String(value))
    log?.info('Set sysctl', { entry: file, value })
    return true
  } catch (error) {
    log?.info('Failed to set sysctl', { entry: file, err: (error as Error).message })
    return false
  }
}
