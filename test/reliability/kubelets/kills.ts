/**
 * Kills the kubelet and containerd repeatedly while pods of all kinds run. Running containers must stay the same, and
 * pods must still be created and deleted.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'

import type { Pod } from '#apis/core/v1.ts'
import { containerdIn, processes } from '#containerd/process-table.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { secureRandom } from '#lib/random.ts'

import { freePort } from '../../upstream/kube-apiserver.ts'
import type { KubeletBed, RunningKubelet } from '../../upstream/kubelet-bed.ts'
import { kinds, objectsFor, PASSING } from './kinds.ts'
import { faceOf, isReady, World } from './world.ts'

export interface Kills {
  readonly kubelets: number
  readonly containerds: number
  readonly say: (line: string) => void
}

/** Returns what was wrong. */
export async function kill(bed: KubeletBed, { kubelets, containerds, say }: Kills): Promise<string[]> {
  const world = new World(bed)
  const wanted = await prepare(bed)
  let kubelet = await bed.start('ours')
  for (const [name, { spec }] of Object.entries(wanted)) await world.make(name, spec)
  const settled = (pods: readonly Pod[]): boolean =>
    Object.entries(wanted).every(([name, { phase = 'Running' }]) => {
      const pod = pods.find(({ metadata }) => metadata.name === name)
      return pod?.status.phase === phase && (phase === 'Succeeded' || isReady(pod))
    })
  await world.until('all pods to run', settled)
  const before = await facesOf(world, wanted)
  say(`${before.size} pods run`)
  const faults: string[] = []
  const churn = startChurn(world)
  const returned: number[] = []
  for (let round = 1; round <= kubelets; round++) {
    await sleep(realClock, secureRandom.int(3000))
    await kubelet.stop('SIGKILL')
    const startedMs = realClock.elapsed()
    kubelet = await bed.start('ours')
    await untilAnswers(bed, kubelet, before)
    returned.push(realClock.elapsed() - startedMs)
    say(`kubelet killed ${round} times; logs could be read again after ${Math.round(returned.at(-1) ?? 0)} ms`)
  }
  for (let round = 1; round <= containerds; round++) {
    await sleep(realClock, secureRandom.int(3000))
    await killContainerd(bed)
    say(`containerd killed ${round} times`)
  }
  await churn.stop()
  await world.until('passing pods to be gone', (pods) =>
    pods.every(({ metadata }) => !metadata.name?.startsWith('passing')),
  )
  await world.until('all pods to be as before', settled).catch((error: Error) => faults.push(error.message))
  faults.push(...differences(before, await facesOf(world, wanted)))
  say(`${churn.count()} pods came and went; slowest return ${Math.round(Math.max(...returned))} ms`)
  faults.push(...(await world.removeAll([kubelet.rootDir])).map((what) => `left: ${what}`))
  await kubelet.stop('SIGTERM')
  return faults
}

async function prepare(bed: KubeletBed): Promise<ReturnType<typeof kinds>> {
  const hostPath = join(bed.folder, 'host')
  await mkdir(join(hostPath, 'below'), { recursive: true })
  const made = new Map<string, { metadata: { uid: string } }>()
  for (const [name, [path, object]] of Object.entries(objectsFor(hostPath)))
    made.set(name, await bed.ask('POST', path, object))
  const claimRef = { namespace: 'default', name: 'claim', uid: made.get('claim')?.metadata.uid }
  await bed.ask('PATCH', '/api/v1/persistentvolumes/volume', { spec: { claimRef } })
  for (const path of ['persistentvolumes/volume', 'namespaces/default/persistentvolumeclaims/claim'])
    await bed.ask('PATCH', `/api/v1/${path}/status`, { status: { phase: 'Bound' } })
  const ports = [await freePort(), await freePort(), await freePort(), await freePort()]
  return kinds({ ports, hostPath })
}

async function facesOf(world: World, wanted: object): Promise<Map<string, string>> {
  const pods = (await world.pods()).filter(({ metadata }) => Object.hasOwn(wanted, metadata.name ?? ''))
  return new Map(pods.map((pod) => [pod.metadata.name ?? '', faceOf(pod)]))
}

function differences(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return [...before].flatMap(([name, face]) =>
    after.get(name) === face ? [] : [`changed: ${face}\n     into: ${after.get(name)}`],
  )
}

/** Pods come and go at moments of chance, some of them with a grace that is longer than a kubelet lives. */
function startChurn(world: World): { stop(): Promise<void>; count(): number } {
  const stopped = new AbortController()
  let count = 0
  const running = (async () => {
    while (!stopped.signal.aborted) {
      const name = `passing-${count++}`
      await world.make(name, PASSING[secureRandom.int(PASSING.length)] ?? {})
      await sleep(realClock, secureRandom.int(4000))
      await world.remove(name)
    }
  })()
  return {
    async stop() {
      stopped.abort()
      await running
    },
    count: () => count,
  }
}

/** The port is served, and the log of a container can be read. */
async function untilAnswers(
  { server: { tls } }: KubeletBed,
  { port }: RunningKubelet,
  pods: ReadonlyMap<string, string>,
): Promise<void> {
  const http = createHttpClient({ clock: realClock, tls: { insecure: true, certificate: tls.cert, key: tls.key } })
  const name = [...pods.keys()].find((each) => each === 'plain') ?? ''
  try {
    for (let attempt = 0; ; attempt++) {
      const answer = await http
        .request({ url: `https://127.0.0.1:${port}/containerLogs/default/${name}/main` })
        .catch(() => undefined)
      if (answer?.status === 200) return
      if (attempt > 600) throw new Error(`The kubelet does not answer: ${answer?.status}`)
      await sleep(realClock, 100)
    }
  } finally {
    http.close()
  }
}

async function killContainerd({ machine, containerd }: KubeletBed): Promise<void> {
  const [pid = 0] = containerdIn(await processes(), machine.places)
  process.kill(pid, 'SIGKILL')
  for (let attempt = 0; attempt < 600; attempt++) {
    const [now] = containerdIn(await processes(), machine.places)
    const isBack = now !== undefined && now !== pid
    if (isBack && (await containerd.runtime.version({}).catch(() => undefined)) !== undefined) return
    await sleep(realClock, 100)
  }
  throw new Error('containerd does not come back')
}
