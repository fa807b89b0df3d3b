/**
 * Regression tests: command lines that once behaved differently from upstream's kubectl. They run in one process
 * against a separate server without controllers.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { after, before, describe, it } from 'node:test'

import { runKubectl } from '#kubectl/kubectl.ts'
import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let plane: ControlPlane
let folder = ''

before(async () => {
  plane = await startControlPlane()
  folder = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-careful-'))
  await writeFile(join(folder, 'kubeconfig'), plane.kubeconfig)
})

after(async () => {
  await plane.stop()
  await rm(folder, { recursive: true, force: true })
})

interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function kubectl(line: string, stdin = ''): Promise<Outcome> {
  const texts = { out: '', err: '' }
  const sink = (name: 'out' | 'err'): Writable =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        texts[name] += chunk.toString()
        done()
      },
    })
  const context = {
    path: ['kubectl'],
    args: line.split(' '),
    env: { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: join(folder, 'kubeconfig') },
    cwd: folder,
    stdin: () => Readable.from([Buffer.from(stdin)]),
    stdout: sink('out'),
    stderr: sink('err'),
    clock: realClock,
    random: secureRandom,
  } as unknown as Parameters<typeof runKubectl>[0]
  const code = await runKubectl(context, new AbortController().signal)
  return { code, ...texts }
}

function configMap(name: string, more: object = {}, metadata: object = {}): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, ...more })
}

describe('kubectl', () => {
  it('rejects names with several path segments, and deletes nothing', async () => {
    await kubectl('create configmap kept')
    for (const name of ['..', '.', 'a%b']) {
      const { code, err } = await kubectl(`delete cm ${name}`)
      assert.equal(code, 1)
      assert.match(err, /^error: invalid resource name "/)
    }
    assert.equal((await kubectl('get cm kept -o name')).out, 'configmap/kept\n')
    assert.equal((await kubectl('get ns default -o name')).out, 'namespace/default\n')
  })

  it('rejects --as-group without --as', async () => {
    for (const flag of ['--as-group=a', '--as-uid=1', '--as-user-extra=a=b']) {
      const { code, out, err } = await kubectl(`get cm ${flag}`)
      assert.deepEqual([code, out], [1, ''])
      assert.match(err, /^error: requesting uid, groups or user-extra for \S+ without impersonating a user\n$/)
    }
  })

  it('prefers built-in types to custom resources of the same name', async () => {
    const names = { plural: 'thieves', singular: 'thief', kind: 'Gadget', shortNames: ['pod', 'po', 'cm'] }
    const versions = [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }]
    const spec = { group: 'example.com', scope: 'Namespaced', names, versions }
    const crd = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' }
    await kubectl('create -f -', JSON.stringify({ ...crd, metadata: { name: 'thieves.example.com' }, spec }))
    await kubectl('wait --for=condition=Established crd/thieves.example.com --timeout=30s')
    const gadget = { apiVersion: 'example.com/v1', kind: 'Gadget', metadata: { name: 'g' } }
    await kubectl('create -f -', JSON.stringify(gadget))
    assert.equal((await kubectl('get gadget.example.com/g -o name')).out, 'gadget.example.com/g\n')
    assert.deepEqual(await kubectl('get pod -o name'), { code: 0, out: '', err: '' })
    const { out, err } = await kubectl('get cm kept -o name')
    assert.equal(out, 'configmap/kept\n')
    const warning = 'Warning: short name "cm" could also match lower priority resource thieves.example.com\n'
    assert.equal(err, warning)
    // Upstream's kubectl resolves the names twice, and so prints the warning twice.
    assert.equal((await kubectl('create role r --verb=get --resource=cm --dry-run=client')).err, warning)
    await kubectl('delete crd thieves.example.com')
    await rm(join(folder, '.kube'), { recursive: true, force: true })
  })

  it('records the command line with --record', async () => {
    const { err } = await kubectl('label configmap kept a=b --record')
    assert.equal(err, 'Flag --record has been deprecated, --record will be removed in the future\n')
    const { out } = await kubectl('get configmap kept -o jsonpath={.metadata.annotations}')
    assert.equal(out, '{"kubernetes.io/change-cause":"kubectl label configmap kept a=b --record=true"}')
  })

  it('ends a watch without an error after --request-timeout, and prints the resource type of each object', async () => {
    const { code, out, err } = await kubectl('get configmaps --watch --request-timeout=1s -o name')
    assert.deepEqual([code, err], [0, ''])
    assert.match(out, /^configmap\/kept$/m)
  })

  it('replaces the volume source in a client-side apply', async () => {
    const deployment = (volume: object): string =>
      JSON.stringify({
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'volumes' },
        spec: {
          selector: { matchLabels: { a: 'b' } },
          template: {
            metadata: { labels: { a: 'b' } },
            spec: { containers: [{ name: 'c', image: 'x' }], volumes: [{ name: 'v', ...volume }] },
          },
        },
      })
    await kubectl('create -f -', deployment({ emptyDir: {} }))
    const { out } = await kubectl('apply -f -', deployment({ hostPath: { path: '/x' } }))
    assert.equal(out, 'deployment.apps/volumes configured\n')
  })

  it('omits resourceVersion when apply --force deletes and recreates an object', async () => {
    await kubectl('apply -f -', configMap('fixed', { immutable: true, data: { a: 'b' } }))
    const changed = configMap('fixed', { immutable: true, data: { a: 'c' } })
    assert.equal((await kubectl('apply --force -f -', changed)).out, 'configmap/fixed configured\n')
    const bad = configMap('fixed', { immutable: true, data: { a: 'd' } }, { labels: { 'a b': 'c' } })
    assert.equal((await kubectl('apply --force -f -', bad)).code, 1)
    assert.equal((await kubectl('get configmap fixed -o jsonpath={.data.a}')).out, 'c')
  })

  it('rejects two uses of standard input in set env', async () => {
    const { code, err } = await kubectl('set env -f - -', 'x')
    assert.deepEqual([code, err], [1, 'error: standard input cannot be used for multiple arguments\n'])
  })

  it('sends the file of --raw unchanged', async () => {
    const { code, err } = await kubectl('create --raw /api/v1/namespaces/default/configmaps -f -', 'hello')
    assert.equal(code, 1)
    assert.match(err, /^Error from server \(BadRequest\): /)
  })

  it('rejects old API versions of roles in auth reconcile', async () => {
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1beta1', kind: 'Role', metadata: { name: 'r' } }
    const { err } = await kubectl('auth reconcile -f -', JSON.stringify(role))
    assert.equal(err, 'error: only rbac.authorization.k8s.io/v1 is supported: not *v1beta1.Role\n')
  })

  it('applies --template to the workload in rollout history', async () => {
    const { out } = await kubectl('rollout history deploy/volumes --template={{.kind}}/{{.metadata.name}}')
    assert.equal(out, 'Deployment/volumes')
  })
})
