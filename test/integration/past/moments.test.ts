/** Tests the document that says which moments can be read. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Bed, past, startBed } from './bed.ts'

const MOMENTS = '/apis/hyperkube.io/v1/moments'
const MAPS = '/api/v1/namespaces/default/configmaps'
const ANN = { name: 'ann', uid: '', groups: ['system:authenticated'], extra: {} }
const RBAC = '/apis/rbac.authorization.k8s.io/v1'

async function allow(bed: Bed, verb: string): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io'
  const rules = [{ apiGroups: ['hyperkube.io'], resources: ['moments'], verbs: [verb] }]
  await bed.must('POST', `${RBAC}/clusterroles`, { metadata: { name: verb }, rules })
  await bed.must('POST', `${RBAC}/clusterrolebindings`, {
    metadata: { name: verb },
    roleRef: { apiGroup, kind: 'ClusterRole', name: verb },
    subjects: [{ apiGroup, kind: 'User', name: ANN.name }],
  })
}

describe('moments', () => {
  it('reach from the oldest state of the store to the newest', async () => {
    await using bed = await startBed()
    await bed.clock.advance(60_000)
    await bed.must('POST', MAPS, { metadata: { name: 'one' } })
    const range = (await bed.send(MOMENTS)).json()
    assert.deepEqual(Object.keys(range), ['kind', 'apiVersion', 'oldest', 'newest', 'bytes', 'gaps'])
    assert.deepEqual([range.kind, range.gaps], ['MomentRange', []])
    assert.equal(range.newest.resourceVersion, String(await bed.revision()))
    assert.equal(Date.parse(range.newest.time) - Date.parse(range.oldest.time), 60_000)
    assert.ok(range.bytes > 1000)
    for (const { resourceVersion, time } of [range.oldest, range.newest])
      for (const moment of [`rv:${resourceVersion}`, time])
        assert.equal((await bed.send(past(moment, MAPS))).status, 200, moment)
  })

  it('are named by the error for a moment that is too old', async () => {
    await using bed = await startBed()
    for (let at = 0; at < 3; at++) {
      await bed.clock.advance(10_000)
      await bed.must('POST', MAPS, { metadata: { name: `one-${at}` } })
    }
    await bed.plane.running.server.registry.services.backend.compact(await bed.revision())
    const { oldest } = (await bed.send(MOMENTS)).json()
    assert.equal(oldest.resourceVersion, String(await bed.revision()))
    const end = `it begins at ${oldest.time}, rv:${oldest.resourceVersion}`
    const history = 'The history of the cluster does not reach back to'
    const messages = await Promise.all(
      ['-25s', 'rv:5', 'rv:1..rv:5'].map(async (moment) => {
        const refused = await bed.send(past(moment, MAPS))
        assert.equal(refused.status, 410, moment)
        return refused.json().message
      }),
    )
    assert.match(messages[0], new RegExp(`^${history} \\S+: ${end}$`))
    assert.deepEqual(messages.slice(1), Array(2).fill(`${history} this revision: ${end}`))
  })

  it('can be read by users who may get moments', async () => {
    await using bed = await startBed()
    await allow(bed, 'list')
    const refused = await bed.send(MOMENTS, { as: ANN })
    assert.equal(refused.status, 403)
    assert.match(refused.json().message, /cannot list resource "moments" in API group "hyperkube.io"/)
    await allow(bed, 'get')
    assert.equal((await bed.send(MOMENTS, { as: ANN })).status, 200)
    assert.equal((await bed.send(MOMENTS, { as: ANN, method: 'POST', body: {} })).status, 403)
  })

  it('cannot be written, and are not in discovery', async () => {
    await using bed = await startBed()
    assert.equal((await bed.send(MOMENTS, { method: 'POST', body: {} })).status, 405)
    assert.equal((await bed.send(`${MOMENTS}/one`)).status, 404)
    assert.equal((await bed.send(past('-0s', MOMENTS))).status, 404)
    for (const path of ['/apis', '/']) assert.doesNotMatch((await bed.send(path)).text, /hyperkube/)
  })
})
