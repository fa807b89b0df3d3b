/** The bed of tests of `kubectl why`: clusters in virtual time, pods, and what a user types and reads. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { after, before } from 'node:test'

import { type Pod, Pods, type PodSpec } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { fieldAt } from '#explain/citation.ts'
import { whyObject } from '#explain/explain.ts'
import type { Evidence, Explanation } from '#explain/explanation.ts'
import { Reader } from '#explain/reader.ts'
import { runKubectl } from '#kubectl/kubectl.ts'
import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'
import { statusOf } from '#meta/status.ts'
import type { TestCluster } from '#testing/cluster.ts'

export const namespace = 'default'

let folder = ''
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hyperkube-why-'))
})
after(() => rm(folder, { recursive: true, force: true }))

class Text extends Writable {
  text = ''

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}

/** What a user reads after typing a line of kubectl. */
export async function read(cluster: TestCluster, line: string): Promise<string> {
  const kubeconfig = join(folder, `${new URL(cluster.url).port}.kubeconfig`)
  await writeFile(kubeconfig, cluster.kubeconfig)
  const [stdout, stderr] = [new Text(), new Text()]
  const context = {
    env: { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: kubeconfig, TMPDIR: folder },
    cwd: folder,
    stdin: () => Readable.from([]),
    clock: { ...realClock, now: () => cluster.clock.now().getTime() },
    random: secureRandom,
    readFile: () => Promise.reject(new Error('no file')),
    path: ['kubectl'],
    args: line.split(' '),
    stdout,
    stderr,
  }
  await runKubectl(context, new AbortController().signal)
  return `${stderr.text}${stdout.text}`
}

export interface PodOptions {
  readonly requests?: Record<string, string>
  readonly spec?: Partial<PodSpec>
  readonly labels?: Record<string, string>
}

export function podOf(name: string, { requests = {}, spec = {}, labels = {} }: PodOptions = {}): Pod {
  const containers = [{ name: 'app', image: 'app:1', resources: { requests } }]
  return { metadata: { namespace, name, labels }, spec: { containers, ...spec } } as unknown as Pod
}

export async function createPod(cluster: TestCluster, name: string, options: PodOptions = {}): Promise<Pod> {
  return cluster.client.create(Pods, podOf(name, options))
}

export function why(client: ApiClient, kind: Kind, name: string, moment?: string): Promise<Explanation> {
  const reader = new Reader({ client, moment })
  return whyObject(kind, { ...(kind.namespaced && { namespace }), name }, reader)
}

/** Every cited field that does not have its value at the cited resourceVersion. */
export async function falseEvidence(
  { client }: TestCluster,
  kinds: readonly Kind[],
  { steps }: Pick<Explanation, 'steps'>,
): Promise<Evidence[]> {
  const wrong: Evidence[] = []
  for (const evidence of steps.flatMap((step) => step.evidence)) {
    const [, resource = '', path = '', version = ''] = /^([^/]+)\/(.+)@(\d+)$/.exec(evidence.object) ?? []
    const [plural, ...group] = resource.split('.')
    const kind = kinds.find((one) => one.plural === plural && one.group === group.join('.'))
    const names = path.split('/')
    const [first = '', second] = names
    const where = second === undefined ? { name: first } : { namespace: first, name: second }
    const object = kind && (await objectAt(client, kind, where, version))
    const isTrue =
      object?.metadata.resourceVersion === version &&
      JSON.stringify(fieldAt(object, evidence.fieldPath)) === JSON.stringify(evidence.value)
    if (!isTrue) wrong.push(evidence)
  }
  return wrong
}

async function objectAt(
  client: ApiClient,
  kind: Kind,
  where: { namespace?: string; name: string },
  version: string,
): Promise<KubeObject | undefined> {
  const current = await client.get(kind, where).catch(() => undefined)
  if (current?.metadata.resourceVersion === version) return current
  return client
    .at(`rv:${version}`)
    .get(kind, where)
    .catch((error: unknown) => {
      if (statusOf(error) === undefined) throw error
      return undefined
    })
}
