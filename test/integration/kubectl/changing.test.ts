/**
 * Tests kubectl commands that change objects, in one process, against a separate server without controllers and nodes.
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
  folder = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-changing-'))
  await writeFile(join(folder, 'kubeconfig'), plane.kubeconfig)
})

after(async () => {
  await plane.stop()
  await rm(folder, { recursive: true, force: true })
})

interface Said {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function kubectl(line: string, env: Readonly<Record<string, string>> = {}): Promise<Said> {
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
    env: { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: join(folder, 'kubeconfig'), TMPDIR: folder, ...env },
    cwd: folder,
    stdin: () => Readable.from([]),
    stdout: sink('out'),
    stderr: sink('err'),
    clock: realClock,
    random: secureRandom,
  } as unknown as Parameters<typeof runKubectl>[0]
  const code = await runKubectl(context, new AbortController().signal)
  return { code, ...texts }
}

async function said(line: string, env?: Readonly<Record<string, string>>): Promise<string> {
  const { out, err } = await kubectl(line, env)
  return `${out}${err}`
}

describe('kubectl commands that change objects', () => {
  it('pauses, resumes and restarts a Deployment', async () => {
    await kubectl('create deployment web --image=nginx')
    assert.equal(await said('rollout pause deploy/web'), 'deployment.apps/web paused\n')
    assert.equal(await said('rollout pause deploy/web'), 'error: deployments.apps "web" is already paused\n')
    assert.match(await said('rollout restart deploy/web'), /can't restart paused deployment/)
    assert.equal(await said('rollout resume deploy/web'), 'deployment.apps/web resumed\n')
    assert.equal(await said('rollout restart deploy/web'), 'deployment.apps/web restarted\n')
    assert.equal(
      await said('rollout status deploy/web --watch=false'),
      'Waiting for deployment spec update to be observed...\n',
    )
  })

  it('sets images, environment variables and resources', async () => {
    assert.equal(await said('set image deploy/web nginx=nginx:2'), 'deployment.apps/web image updated\n')
    assert.equal(await said('set env deploy/web A=1 B=2'), 'deployment.apps/web env updated\n')
    assert.equal(await said('set env deploy/web --list'), '# Deployment web, container nginx\nA=1\nB=2\n')
    assert.match(await said('set resources deploy/web --limits=cpu=1'), /resource requirements updated/)
  })

  it('waits for conditions, and times out', async () => {
    assert.equal(await said('wait --for=jsonpath={.spec.replicas}=1 deploy/web'), 'deployment.apps/web condition met\n')
    const { code, err } = await kubectl('wait --for=condition=Available deploy/web --timeout=50ms')
    assert.deepEqual([code, err], [1, 'error: timed out waiting for the condition on deployments/web\n'])
    assert.deepEqual(await kubectl('wait --for=delete deploy/none'), { code: 0, out: '', err: '' })
  })

  it('edits objects, and reports an edit without changes', async () => {
    await kubectl('create configmap ed --from-literal=a=alpha')
    assert.equal(await said('edit cm/ed', { EDITOR: 'true' }), 'Edit cancelled, no changes made.\n')
    assert.equal(await said('edit cm/ed', { EDITOR: 'sed -i s/alpha/beta/' }), 'configmap/ed edited\n')
    assert.equal(await said('get cm/ed -o jsonpath={.data.a}'), 'beta')
    const wrong = await kubectl('edit cm/ed', { EDITOR: 'sed -i s/kind:.*/kind/' })
    assert.equal(wrong.code, 1)
    assert.match(wrong.err, /^error: configmaps "ed" is invalid\nA copy of your changes has been stored to /)
  })

  it('runs diff, replace and expose', async () => {
    const file = join(folder, 'cm.yaml')
    await writeFile(file, 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ed}\ndata: {a: gamma}\n')
    const { code, out } = await kubectl(`diff -f ${file}`)
    assert.equal(code, 1)
    assert.match(out, /^-\s+a: beta\n\+\s+a: gamma$/m)
    assert.equal(await said(`replace -f ${file}`), 'configmap/ed replaced\n')
    assert.equal((await kubectl(`diff -f ${file}`)).code, 0)
    assert.equal((await kubectl('diff')).code, 2)
    assert.equal(await said('expose deploy/web --port=80'), 'service/web exposed\n')
    assert.equal(await said('autoscale deploy/web --max=3'), 'horizontalpodautoscaler.autoscaling/web autoscaled\n')
  })

  it('cordons, taints and drains nodes', async () => {
    await plane.request('POST', '/api/v1/nodes', { metadata: { name: 'n1' } })
    assert.equal(await said('taint nodes n1 a=b:NoSchedule'), 'node/n1 tainted\n')
    assert.equal(await said('drain n1'), 'node/n1 cordoned\nnode/n1 drained\n')
    assert.equal(await said('uncordon n1'), 'node/n1 uncordoned\n')
  })

  it('answers auth can-i', async () => {
    assert.equal(await said('auth can-i create pods'), 'yes\n')
    assert.deepEqual(await kubectl('auth can-i create pods --as=nobody'), { code: 1, out: 'no\n', err: '' })
  })
})
