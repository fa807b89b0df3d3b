/** Tests `kubectl history` against a server in the same process. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type KubectlBed, startKubectlBed } from './kubectl-bed.ts'

describe('kubectl history', () => {
  let bed: KubectlBed
  before(async () => {
    bed = await startKubectlBed()
    await bed.kubectl('create deployment web --image=nginx:1')
    await bed.kubectl('set image deployment/web nginx=nginx:2')
    await bed.kubectl('scale deployment/web --replicas=3')
    await bed.kubectl('delete deployment web')
  })
  after(() => bed?.[Symbol.asyncDispose]())

  /** Without times and versions. */
  async function shown(line: string): Promise<string[]> {
    const { out, err } = await bed.kubectl(line)
    return `${err}${out}`
      .trim()
      .split('\n')
      .map((row) => row.replace(/^\S+Z +\d+ +/, ''))
  }

  it('lists the changes of a deleted object', async () => {
    assert.deepEqual(await shown('history deployment/web'), [
      'TIME                   VERSION   WHO     CHANGE',
      'admin   created',
      'admin   spec.template.spec.containers[nginx].image: nginx:1 → nginx:2',
      'admin   spec.replicas: 1 → 3',
      'admin   deleted',
    ])
  })

  it('lists the changes of some fields, and of a part of the time', async () => {
    const lines = await shown('history deployment web --fields=spec.replicas')
    assert.deepEqual(
      lines.slice(1).map((line) => line.split(/ {2,}/)[1]),
      ['created', 'spec.replicas: 1 → 3', 'deleted'],
    )
    assert.match((await shown('history deployment/web --to=-1h')).join(), /does not reach back to \S+: it begins at/)
    assert.deepEqual((await shown('history deployment/web --limit=1')).slice(-1), ['admin   deleted'])
  })

  it('prints all versions as YAML', async () => {
    const { out } = await bed.kubectl('history deployment/web -o yaml')
    assert.match(out, /^apiVersion: hyperkube.io\/v1\n/)
    assert.equal(out.match(/image: nginx:1/g)?.length, 1)
  })

  it('explains its errors', async () => {
    assert.deepEqual(await bed.kubectl('history web'), {
      code: 1,
      out: '',
      err: 'error: name one object, as TYPE NAME or TYPE/NAME\n',
    })
    assert.match((await bed.kubectl('history deployment/none')).err, /^No changes of deployments\/none/)
    assert.match((await bed.kubectl('history deployment/web --from=yesterday')).err, /"yesterday" is not a moment/)
  })
})
