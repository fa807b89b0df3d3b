/**
 * Faults around a kubelet: an unreachable API server, a hanging runtime, a full disk. Each function returns what the
 * kubelet reports and does, as lines, to compare our kubelet with upstream's.
 */
import { execFileSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'

import type { Pod } from '#apis/core/v1.ts'
import { containerdIn, processes } from '#containerd/process-table.ts'
import { realClock, sleep } from '#lib/clock.ts'

import { IMAGE } from '../../integration/kubelet/containerd-bed.ts'
import { conditionsOf, type KubeletBed, type Make } from '../../upstream/kubelet-bed.ts'
import { isReady, World } from './world.ts'

/** How long the server is away, in seconds. */
export interface FaultOptions {
  readonly cutSeconds: number
  readonly say: (line: string) => void
}

type Fault = (bed: KubeletBed, make: Make, options: FaultOptions) => Promise<string[]>

const container = (script: string, more: object = {}): object => ({
  name: 'main',
  image: IMAGE,
  imagePullPolicy: 'Never',
  command: ['sh', '-c', script],
  ...more,
})
const FOREVER = 'trap "exit 0" TERM; while true; do sleep 1; done'

const restartsOf = (pod: Pod | undefined): number => pod?.status.containerStatuses?.[0]?.restartCount ?? -1

async function conditionText(bed: KubeletBed, wanted: string): Promise<string> {
  const found = (await conditionsOf(bed.server, bed.node)).find(({ type }) => type === wanted)
  const message = (found?.message ?? '').replaceAll(/\d+m[\d.]+s ago/g, 'a while ago')
  return `${wanted}=${found?.status} ${found?.reason}: ${message}`
}

async function untilCondition(bed: KubeletBed, type: string, status: string): Promise<string> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += 500) {
    const text = await conditionText(bed, type)
    if (text.startsWith(`${type}=${status} `)) return text
    await sleep(realClock, 500)
  }
  return `${await conditionText(bed, type)} (and not ${status})`
}

const PATIENCE_MS = 420_000

/**
 * Without the server, pods continue: crashed containers and those with failed probes restart. The kubelet reports
 * that when the server is back.
 */
const cut: Fault = async (bed, make, { cutSeconds, say }) => {
  const world = new World(bed)
  const kubelet = await bed.start(make)
  const probe = { exec: { command: ['sh', '-c', '! test -e /ill'] }, periodSeconds: 1, failureThreshold: 1 }
  await world.make('steady', { containers: [container(FOREVER)] })
  await world.make('crashing', { containers: [container('sleep 15; exit 3')] })
  const falling = container(`(sleep 20; echo >/ill) & ${FOREVER}`, { livenessProbe: probe })
  await world.make('ill', { containers: [falling], terminationGracePeriodSeconds: 1 })
  await world.make('ending', { restartPolicy: 'Never', containers: [container('sleep 15')] })
  const leaving = { containers: [container(FOREVER)], terminationGracePeriodSeconds: 1 }
  await world.make('leaving', leaving)
  const before = await world.until('pods to run', (pods) => pods.length === 5 && pods.every(isReady))
  bed.link.cut()
  await world.remove('leaving')
  say(`${make}: the server is away for ${cutSeconds} s`)
  await sleep(realClock, cutSeconds * 1000)
  const there = (await world.pods()).length
  bed.link.mend()
  const mendedMs = realClock.elapsed()
  const told = (pods: readonly Pod[]): boolean => {
    const of = (name: string): Pod | undefined => pods.find(({ metadata }) => metadata.name === name)
    const isTold =
      restartsOf(of('crashing')) > 0 && restartsOf(of('ill')) > 0 && of('ending')?.status.phase === 'Succeeded'
    return isTold && of('leaving') === undefined
  }
  const pods = await world.until('all to be told', told)
  say(`${make}: all was told ${Math.round(realClock.elapsed() - mendedMs)} ms after the server was back`)
  const steady = pods.find(({ metadata }) => metadata.name === 'steady')
  const idOf = (pod: Pod | undefined): string => pod?.status.containerStatuses?.[0]?.containerID ?? ''
  const isSame = idOf(steady) === idOf(before.find(({ metadata }) => metadata.name === 'steady'))
  const left = await world.removeAll([kubelet.rootDir])
  await kubelet.stop('SIGTERM')
  return [
    `pods that the server had while it was away: ${there}`,
    `the steady container is ${isSame ? 'the same' : 'another'}, restarted ${restartsOf(steady)} times`,
    await conditionText(bed, 'Ready'),
    ...left.map((what) => `left: ${what}`),
  ]
}

/** The node says so, in time; nothing ends; and all is well as soon as the runtime goes on. */
const hang: Fault = async (bed, make, { say }) => {
  const world = new World(bed)
  const kubelet = await bed.start(make)
  await world.make('steady', { containers: [container(FOREVER)] })
  await world.until('a pod to run', (pods) => pods.every(isReady))
  const [pid = 0] = containerdIn(await processes(), bed.machine.places)
  const stoppedMs = realClock.elapsed()
  process.kill(pid, 'SIGSTOP')
  const lines: string[] = []
  try {
    await world.make('late', { containers: [container(FOREVER)] })
    lines.push(await untilCondition(bed, 'Ready', 'False'))
    say(`${make}: not ready ${Math.round((realClock.elapsed() - stoppedMs) / 1000)} s after the runtime stopped`)
    for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += 1000) {
      if ((await conditionText(bed, 'Ready')).includes('PLEG')) break
      await sleep(realClock, 1000)
    }
    lines.push(await conditionText(bed, 'Ready'))
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  lines.push(await untilCondition(bed, 'Ready', 'True'))
  const pods = await world.until('both pods to run', (all) => all.length === 2 && all.every(isReady))
  lines.push(`restarts: ${pods.map(restartsOf).join()}`)
  const left = await world.removeAll([kubelet.rootDir])
  await kubelet.stop('SIGTERM')
  return [...lines, ...left.map((what) => `left: ${what}`)]
}

const DISK_MIB = 64
const FULL_MIB = 60

/** The pod that fills the disk is evicted, other pods stay, and new pods are rejected until there is space. */
const disk: Fault = async (bed, make, { say }) => {
  const world = new World(bed)
  const rootDir = join(bed.folder, make)
  await mkdir(rootDir, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', rootDir])
  const kubelet = await bed.start(make, {
    evictionHard: { 'nodefs.available': '10%' },
    evictionPressureTransitionPeriod: '5s',
  })
  const volume = { volumes: [{ name: 'v', emptyDir: {} }] }
  const mounts = { volumeMounts: [{ name: 'v', mountPath: '/v' }] }
  await world.make('small', { containers: [container(FOREVER, mounts)], ...volume })
  // The disk is not filled completely, because upstream's kubelet would then evict no pod.
  const fill = `busybox dd if=/dev/zero of=/v/much bs=1M count=${FULL_MIB}; while true; do sleep 1; done`
  await world.make('greedy', { containers: [container(`sleep 3; ${fill}`, mounts)], ...volume })
  const pressure = await untilCondition(bed, 'DiskPressure', 'True')
  say(`${make}: the disk is full`)
  const evicted = await world.until('the greedy one to go', (pods) =>
    pods.some(({ status }) => status.phase === 'Failed'),
  )
  const lines = [pressure]
  const told = evicted.find(({ status }) => status.phase === 'Failed')
  const message = (told?.status.message ?? '').replaceAll(/\d+(?:Ki|Mi)?\b/g, 'N')
  lines.push(`${told?.metadata.name}: ${told?.status.phase} ${told?.status.reason}: ${message}`)
  lines.push(await untilCondition(bed, 'DiskPressure', 'False'))
  await world.make('later', { containers: [container(FOREVER)] })
  const pods = await world.until('a new one to run', (all) =>
    all.some((pod) => pod.metadata.name === 'later' && isReady(pod)),
  )
  lines.push(`the small one is ${pods.find(({ metadata }) => metadata.name === 'small')?.status.phase}`)
  const { items } = await bed.ask<{ items: { reason: string; involvedObject: { kind: string } }[] }>(
    'GET',
    '/api/v1/namespaces/default/events',
  )
  const reasons = items.filter(({ involvedObject }) => involvedObject.kind === 'Node').map(({ reason }) => reason)
  lines.push(
    `said: ${[...new Set(reasons)]
      .filter((reason) => /Evict|Pressure/.test(reason))
      .sort()
      .join()}`,
  )
  const left = await world.removeAll([kubelet.rootDir])
  await kubelet.stop('SIGTERM')
  execFileSync('umount', ['--lazy', rootDir])
  return [...lines, ...left.map((what) => `left: ${what}`)]
}

export const FAULTS: Readonly<Record<string, Fault>> = { cut, hang, disk }
