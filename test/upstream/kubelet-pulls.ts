/**
 * Compares how our kubelet and upstream's pull from a registry with authentication, on the same containerd: `node
 * test/upstream/kubelet-pulls.ts` as root. It compares container states and events of pods without a secret, with a
 * wrong one, with several, and with a credential provider. It also compares whether a pod without access may use a
 * present image. Exits with 1 on a difference.
 */
import { whyNoContainerd } from '../integration/kubelet/containerd-bed.ts'
import {
  credentialFlags,
  GUARD,
  type Having,
  hostOf,
  makePuller,
  makeSecret,
  removePuller,
  saidOf,
  startPrivateRegistry,
  stateOf,
  untilSaid,
} from '../integration/kubelet/private-registry.ts'
import { type KubeletBed, type Make, startKubeletBed } from './kubelet-bed.ts'

const CASES: readonly (readonly [
  name: string,
  repository: string,
  secrets: readonly string[],
  policy?: Having['policy'],
])[] = [
  ['nobody', 'plain/busybox:1', []],
  ['guessing', 'plain/busybox:1', ['wrong']],
  ['guessing-twice', 'plain/busybox:1', ['wrong', 'wronger']],
  ['missing', 'plain/nothing:1', ['right']],
  ['reader', 'plain/busybox:1', ['right']],
  ['both', 'plain/busybox:1', ['wrong', 'right']],
  // From here on the image is there.
  ['borrowing', 'plain/busybox:1', [], 'IfNotPresent'],
  ['sly', 'plain/busybox:1', ['wrong'], 'Never'],
  ['entitled', 'plain/busybox:1', ['right'], 'Never'],
  ['another', 'plain/busybox:1', ['right-again'], 'IfNotPresent'],
  ['asker', 'asked/busybox:1', []],
  ['anybody', 'asked/busybox:1', [], 'IfNotPresent'],
]

async function main(): Promise<number> {
  const fault = await whyNoContainerd()
  if (fault !== undefined) throw new Error(`There can be no containers here: ${fault}`)
  await using closing = new AsyncDisposableStack()
  const bed = await startKubeletBed('compared', closing)
  const registry = closing.use(await startPrivateRegistry(bed.folder, GUARD))
  const host = hostOf(registry)
  await makeSecret(bed, 'right', host, GUARD.password)
  await makeSecret(bed, 'right-again', host, GUARD.password)
  await makeSecret(bed, 'wrong', host, 'guessed')
  await makeSecret(bed, 'wronger', `${host}/plain`, 'guessed too')
  const [mine, reference] = [await linesOf(bed, 'sources', host), await linesOf(bed, 'upstream', host)]
  const differing = [
    ...mine.filter((line) => !reference.includes(line)).map((line) => `ours: ${line}`),
    ...reference.filter((line) => !mine.includes(line)).map((line) => `upstream's: ${line}`),
  ]
  for (const line of mine) process.stdout.write(`${line}\n`)
  process.stdout.write(`${mine.length} lines of ours, ${reference.length} of upstream, ${differing.length} differ\n`)
  for (const line of differing) process.stdout.write(`${line}\n`)
  return differing.length === 0 ? 0 : 1
}

async function linesOf(bed: KubeletBed, make: Make, host: string): Promise<string[]> {
  const kubelet = await bed.start(make, {}, await credentialFlags(bed.folder, host, GUARD))
  const lines: string[] = []
  for (const [name, repository, secrets, policy] of CASES) {
    await makePuller(bed, name, `${host}/${repository}`, { secrets, ...(policy !== undefined && { policy }) })
    const state = await stateOf(bed, name, ['ImagePullBackOff', 'ErrImageNeverPull'])
    lines.push(`${name}: ${state === 'running' ? state : `${state.reason}: ${masked(state.message ?? '')}`}`)
    if (state !== 'running') await untilSaid(bed, name, `Failed: Error: ${state.reason}`)
    for (const said of await saidOf(bed, name)) lines.push(`${name} ${masked(said)}`)
    await removePuller(bed, name)
  }
  await kubelet.stop('SIGTERM')
  await bed.ask('DELETE', `/api/v1/nodes/${bed.node}`)
  await bed.ask('DELETE', '/api/v1/namespaces/default/events')
  return lines
}

/** How long something took, and which of the pods of that name it was. */
const masked = (text: string): string =>
  text.replaceAll(/\b[\d.]+m?s\b/g, 'N').replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'U')

process.exitCode = await main()
