/**
 * Starts programs that only sleep, in place of the components of a worker, and lists their processes, for tests of the
 * supervisor.
 */
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { eventually } from '#kits/lib/eventually.ts'

export const NAMES = ['kubelet', 'flanneld', 'kube-proxy'] as const

export const SETTINGS = {
  clusterCidr: '10.42.0.0/16',
  clusterDomain: 'cluster.local',
  serviceCidr: '10.43.0.0/16',
  dnsServiceIp: '10.43.0.10',
  cniComponent: 'flannel',
  cniMode: 'host-gw',
  nodeIp: '127.0.0.1',
  nodeName: 'n1',
}

/** Each notes that it began; flanneld leaves what says that there is a network. */
export async function writeStandIns(root: string): Promise<void> {
  const bin = join(root, 'usr/local/lib/hyperkube/bin')
  await mkdir(bin, { recursive: true })
  for (const name of NAMES) {
    const makes = name === 'flanneld' ? `mkdir -p ${root}/run/flannel; : > ${root}/run/flannel/subnet.env` : ':'
    await writeFile(join(bin, name), `#!/bin/sh\necho ${name} $$ >> ${root}/began\n${makes}\nexec sleep 1000\n`)
    await chmod(join(bin, name), 0o755)
  }
  const policies = join(bin, 'kube-network-policies')
  const cleanUp = `[ "$1" = --cleanup ] && echo yes > ${root}/cleaned-up && exit 0`
  await writeFile(policies, `#!/bin/sh\n${cleanUp}\necho kube-network-policies $$ >> ${root}/began\nexec sleep 1000\n`)
  await chmod(policies, 0o755)
}

export type Living = Readonly<Record<string, readonly number[]>>

/** Of all that ever began, those that live. */
export async function livingIn(root: string): Promise<Living> {
  const text = (await readFile(join(root, 'began'), 'utf8').catch(() => '')).trim()
  const began = text.split('\n').map((line) => line.split(' '))
  const alive = await Promise.all(began.map(async ([name, pid]) => ({ name, pid, lives: await isAlive(pid) })))
  const of = (wanted: string): number[] =>
    alive.filter(({ name, lives }) => name === wanted && lives).map(({ pid }) => Number(pid))
  const policies = of('kube-network-policies')
  const more = policies.length > 0 ? { 'kube-network-policies': policies } : {}
  return { ...Object.fromEntries(NAMES.map((name) => [name, of(name)])), ...more }
}

/** Waits until there is one of each. */
export function wholeIn(root: string): Promise<Living> {
  return eventually(
    () => livingIn(root),
    (living) => NAMES.every((name) => living[name]?.length === 1),
  )
}

export async function endAllIn(root: string): Promise<void> {
  for (const pids of Object.values(await livingIn(root))) for (const pid of pids) process.kill(pid, 'SIGKILL')
}

async function isAlive(pid = ''): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return /\) [^ZX] /.test(stat)
}
