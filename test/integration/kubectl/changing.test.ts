/**
 * Tests kubectl commands that change objects, in one process, against a separate server without controllers and nodes.
 */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { type KubectlBed, startKubectlBed } from './kubectl-bed.ts'

let bed: KubectlBed
let folder = ''

before(async () => {
  bed = await startKubectlBed()
  ;({ folder } = bed)
})

after(() => bed?.[Symbol.asyncDispose]())

async function said(line: string, env?: Readonly<Record<string, string>>): Promise<string> {
  const { out, err } = await bed.kubectl(line, env)
  return `${out}${err}`
}

describe('kubectl commands that change objects', () => {
  it('pauses, resumes and restarts a Deployment', async () => {
    await bed.kubectl('create deployment web --image=nginx')
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
    const { code, err } = await bed.kubectl('wait --for=condition=Available deploy/web --timeout=50ms')
    assert.deepEqual([code, err], [1, 'error: timed out waiting for the condition on deployments/web\n'])
    assert.deepEqual(await bed.kubectl('wait --for=delete deploy/none'), { code: 0, out: '', err: '' })
  })

  it('edits objects, and reports an edit without changes', async () => {
    await bed.kubectl('create configmap ed --from-literal=a=alpha')
    assert.equal(await said('edit cm/ed', { EDITOR: 'true' }), 'Edit cancelled, no changes made.\n')
    assert.equal(await said('edit cm/ed', { EDITOR: 'sed -i s/alpha/beta/' }), 'configmap/ed edited\n')
    assert.equal(await said('get cm/ed -o jsonpath={.data.a}'), 'beta')
    const wrong = await bed.kubectl('edit cm/ed', { EDITOR: 'sed -i s/kind:.*/kind/' })
    assert.equal(wrong.code, 1)
    assert.match(wrong.err, /^error: configmaps "ed" is invalid\nA copy of your changes has been stored to /)
  })

  it('runs diff, replace and expose', async () => {
    const file = join(folder, 'cm.yaml')
    await writeFile(file, 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ed}\ndata: {a: gamma}\n')
    const { code, out } = await bed.kubectl(`diff -f ${file}`)
    assert.equal(code, 1)
    assert.match(out, /^-\s+a: beta\n\+\s+a: gamma$/m)
    assert.equal(await said(`replace -f ${file}`), 'configmap/ed replaced\n')
    assert.equal((await bed.kubectl(`diff -f ${file}`)).code, 0)
    assert.equal((await bed.kubectl('diff')).code, 2)
    assert.equal(await said('expose deploy/web --port=80'), 'service/web exposed\n')
    assert.equal(await said('autoscale deploy/web --max=3'), 'horizontalpodautoscaler.autoscaling/web autoscaled\n')
  })

  it('cordons, taints and drains nodes', async () => {
    await bed.plane.request('POST', '/api/v1/nodes', { metadata: { name: 'n1' } })
    assert.equal(await said('taint nodes n1 a=b:NoSchedule'), 'node/n1 tainted\n')
    assert.equal(await said('drain n1'), 'node/n1 cordoned\nnode/n1 drained\n')
    assert.equal(await said('uncordon n1'), 'node/n1 uncordoned\n')
  })

  it('answers auth can-i', async () => {
    assert.equal(await said('auth can-i create pods'), 'yes\n')
    assert.deepEqual(await bed.kubectl('auth can-i create pods --as=nobody'), { code: 1, out: 'no\n', err: '' })
  })
})
