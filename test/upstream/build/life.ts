/**
 * Events for the `hyperkube build` test, such as lost machines, and the expected state after each. Each function throws
 * on a difference.
 */
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'

import type { Bed } from './bed.ts'
import { bucket, images, policies } from './further-life.ts'
import { destroyData, killAll, killProgram, plugIn, unplug } from './machines.ts'

export type LifeName =
  | 'nodes'
  | 'kill'
  | 'upgrade'
  | 'snapshot'
  | 'certificates'
  | 'encryption'
  | 'images'
  | 'policies'
  | 'bucket'

const MAX_GAP_MS = 5000

export const LIFE: Readonly<Record<LifeName, (bed: Bed) => Promise<void>>> = {
  nodes,
  kill,
  upgrade,
  snapshot,
  certificates,
  encryption,
  images,
  policies,
  bucket,
}

function must(isSo: boolean, what: string): void {
  if (!isSo) throw new Error(`It is not so that ${what}`)
}

/** One of each role comes and one goes, at once; then all is as it was. */
async function nodes(bed: Bed): Promise<void> {
  const { machines, count } = bed.options
  const spare = machines[count]?.name ?? ''
  const last = machines[count - 1]?.name ?? ''
  await bed.write({ roles: { [spare]: ['controlplane', 'etcd'], [last]: undefined } })
  await bed.build('plan')
  await bed.build('up')
  const [, second, third] = machines.map(({ name }) => name)
  must((await bed.nodes()).get(spare)?.isReady === true, `${spare} has come`)
  must(!(await bed.nodes()).has(last), `${last} has gone`)
  await bed.isSettled()
  // With the new one there, a first member can go and come back as a worker, and a worker can take its machine.
  await bed.write({ roles: { [spare]: ['worker'], [third ?? '']: ['worker'], [last]: ['controlplane', 'etcd'] } })
  await bed.build('up')
  must((await bed.nodes()).size === count + 1, 'all nodes are there')
  await bed.isSettled()
  await bed.write({})
  await bed.build('up')
  must(!(await bed.nodes()).has(spare), `${spare} has gone`)
  must((await bed.nodes()).get(second ?? '')?.isReady === true, `${second} is well`)
  await bed.isSettled()
}

/** Each control plane once: the first crashes and is mended by up, the others are cut off for a while. */
async function kill(bed: Bed): Promise<void> {
  const worker = bed.options.machines[bed.options.planes]
  if (worker === undefined) throw new Error('There is no worker to write from')
  for (const [at, plane] of bed.planes.entries()) {
    const before = await bed.pods()
    const end = await bed.startWriter(worker)
    await sleep(realClock, 3000)
    await (at === 0 ? killAll(plane) : unplug(plane))
    await sleep(realClock, 20_000)
    const told = await end()
    bed.say(`${plane.name} ${at === 0 ? 'killed' : 'cut off'}: ${JSON.stringify(told)}`)
    if (at > 0) await plugIn(plane)
    must(told.gapMs < MAX_GAP_MS, `nobody waits for ${MAX_GAP_MS} ms to write`)
    if (at === 0) await bed.build('up')
    await bed.isWell()
    const after = await bed.pods()
    for (const [uid, { restarts }] of before)
      must(after.get(uid)?.isReady === true && after.get(uid)?.restarts === restarts, `pod ${uid} goes on`)
  }
}

/** Flags of the kubelet and of the API server, with drain: never more than one node away, and never no pod. */
async function upgrade(bed: Bed): Promise<void> {
  const top = {
    upgrade_strategy: { drain: true, max_unavailable_worker: 1, node_drain_input: { timeout: 60 } },
    services: { kubelet: { extra_args: { 'max-pods': '99' } }, 'kube-api': { extra_args: { 'event-ttl': '2h0m0s' } } },
  }
  await bed.write({ top })
  let mostAway = 0
  let fewest = Number.POSITIVE_INFINITY
  let looks = 0
  const done = new AbortController()
  const watch = async (): Promise<void> => {
    while (!done.signal.aborted) {
      const [found, pods] = await Promise.all([bed.nodes(), bed.pods()]).catch(() => [undefined, undefined] as const)
      if (found !== undefined && pods !== undefined) {
        looks++
        mostAway = Math.max(mostAway, [...found.values()].filter(({ isOpen }) => !isOpen).length)
        fewest = Math.min(fewest, [...pods.values()].filter(({ isReady }) => isReady).length)
      }
      await sleep(realClock, 1500)
    }
  }
  const watching = watch()
  await bed.build('up').finally(() => done.abort())
  await watching
  bed.say(`upgrade: ${looks} looks, at most ${mostAway} nodes cordoned, at least ${fewest} pods ready`)
  must(mostAway === 1 && fewest >= 1, 'one node is away at a time, and pods are ready')
  for (const name of (await bed.nodes()).keys()) {
    const config = await bed.kubectl('get', '--raw', `/api/v1/nodes/${name}/proxy/configz`)
    must(config.includes('"maxPods":99'), `${name} has the new flag`)
  }
  await bed.isSettled()
}

/** All data of etcd are lost on all machines; what was there when the snapshot was taken is there again. */
async function snapshot(bed: Bed): Promise<void> {
  await bed.kubectl('create', 'configmap', 'before', '--from-literal=a=b')
  await bed.build('etcd', 'snapshot-save', '--name', 'life')
  await bed.kubectl('create', 'configmap', 'after', '--from-literal=a=b')
  await bed.build('etcd', 'snapshot-list')
  const pods = await bed.pods()
  for (const plane of bed.planes) await destroyData(plane, 'etcd')
  for (const plane of bed.planes) await killProgram(plane, 'etcd')
  await bed.build('etcd', 'snapshot-restore', '--name', 'life')
  await bed.isWell()
  const { items } = await bed.get<{ items: { metadata: { name: string } }[] }>('configmaps')
  const names = items.map(({ metadata }) => metadata.name)
  must(names.includes('before') && !names.includes('after'), `what is there is of the snapshot: ${names.join(' ')}`)
  const now = await bed.pods()
  for (const [uid, { restarts }] of pods) must(now.get(uid)?.restarts === restarts, `pod ${uid} goes on`)
  await bed.isSettled()
}

/** New certificates of one service, of all, and of new authorities: who trusts only the old ones is refused. */
async function certificates(bed: Bed): Promise<void> {
  const { folder } = bed.options
  const pods = await bed.pods()
  const kubeconfig = join(folder, 'kube_config_cluster.yml')
  await copyFile(kubeconfig, join(folder, 'old.yml'))
  await bed.build('cert', 'rotate', '--service', 'kubelet')
  await bed.isWell()
  await bed.build('cert', 'rotate')
  await bed.isWell()
  must(
    (await readFile(kubeconfig, 'utf8')) !== (await readFile(join(folder, 'old.yml'), 'utf8')),
    'the kubeconfig is new',
  )
  await bed.build('cert', 'rotate', '--rotate-ca')
  await bed.isWell()
  await bed.hyperkube('kubectl', '--kubeconfig=old.yml', 'get', 'nodes').then(
    () => must(false, 'the old authority is trusted no more'),
    () => undefined,
  )
  const now = await bed.pods()
  for (const uid of pods.keys()) must(now.get(uid)?.isReady === true, `pod ${uid} goes on`)
  await bed.isSettled()
}

/** Secrets are encrypted under a cluster at work, get another key, and are in clear again. */
async function encryption(bed: Bed): Promise<void> {
  await bed.kubectl('create', 'secret', 'generic', 'kept', '--from-literal=word=moon')
  const read = async (): Promise<string> => {
    const { data } = await bed.get<{ data: Record<string, string> }>('secret', 'kept')
    return Buffer.from(data['word'] ?? '', 'base64').toString()
  }
  await bed.write({ top: { services: { 'kube-api': { secrets_encryption_config: { enabled: true } } } } })
  await bed.build('up')
  must((await read()) === 'moon', 'the Secret is read')
  await bed.isSettled()
  await bed.build('encrypt', 'rotate-key')
  must((await read()) === 'moon', 'the Secret is read with another key')
  await bed.isSettled()
  await bed.write({})
  await bed.build('up')
  must((await read()) === 'moon', 'the Secret is read in clear')
  await bed.isSettled()
}
