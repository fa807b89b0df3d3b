/** Tests that users with the permission make the history forget objects, and no others do. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import type { User } from '#auth/user.ts'

import { type Bed, past, startBed } from './bed.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const ROLES = '/apis/rbac.authorization.k8s.io/v1/clusterroles'
const BINDINGS = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'

function userOf(name: string): User {
  return { name, uid: '', groups: ['system:authenticated'], extra: {} }
}

describe('forgetting', () => {
  const folder = mkdtempSync(join(tmpdir(), 'past-forget-'))
  let bed: Bed
  const revisions: number[] = []

  before(async () => {
    bed = await startBed({ settings: { 'history-file': join(folder, 'history.db') } })
    const rules = [
      { apiGroups: [''], resources: ['configmaps'], verbs: ['*'] },
      { apiGroups: ['hyperkube.io'], resources: ['moments'], verbs: ['get'] },
    ]
    await bed.must('POST', ROLES, { metadata: { name: 'reader' }, rules })
    const forgetting = { apiGroups: ['hyperkube.io'], resources: ['moments'], verbs: ['get', 'delete'] }
    await bed.must('POST', ROLES, { metadata: { name: 'forgetter' }, rules: [rules[0], forgetting] })
    for (const name of ['reader', 'forgetter'])
      await bed.must('POST', BINDINGS, {
        metadata: { name },
        roleRef: { kind: 'ClusterRole', name },
        subjects: [{ kind: 'User', name }],
      })
    for (const name of ['one', 'two', 'three', 'four']) {
      await bed.must('POST', MAPS, { metadata: { name }, data: { key: 'before' } })
      await bed.must('PUT', `${MAPS}/${name}`, { metadata: { name }, data: { key: 'after' } })
      revisions.push(await bed.revision())
      await bed.clock.advance(2000)
    }
    await bed.leaveToHistory()
  })
  after(async () => {
    await bed[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true })
  })

  async function names(revision: number | undefined): Promise<string[]> {
    const { json } = await bed.send(past(`rv:${revision}`, MAPS))
    return json().items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)
  }

  it('needs its own permission', async () => {
    const path = past('rv:0..-0s', `${MAPS}/one`)
    for (const user of ['nobody', 'reader']) {
      const { status, text } = await bed.send(path, { method: 'DELETE', as: userOf(user) })
      assert.equal(status, 403, text)
    }
    assert.deepEqual(await names(revisions[1]), ['kube-root-ca.crt', 'one', 'two'])
  })

  it('forgets an object, and nothing else', async () => {
    const path = past('rv:0..-0s', `${MAPS}/one`)
    const { status, json } = await bed.send(path, { method: 'DELETE', as: userOf('forgetter') })
    assert.equal(status, 200)
    assert.match(json().message, /^the history has forgotten 2 changes;/)
    assert.deepEqual(await names(revisions[1]), ['kube-root-ca.crt', 'two'])
    assert.deepEqual((await bed.send(past('rv:0..-0s', `${MAPS}/one`))).json().items, [])
    assert.equal((await bed.send(past('rv:0..-0s', `${MAPS}/two`))).json().items.length, 2)
    assert.equal((await bed.send(`${MAPS}/one`)).status, 200)
  })

  it('refuses what it cannot do exactly', async () => {
    const refused: readonly [string, RegExp][] = [
      [past(`rv:${revisions[1]}..-0s`, `${MAPS}/two`), /from its beginning/],
      [past('rv:0..-0s', '/api/v1/configmaps?fieldSelector=metadata.name%3Dtwo'), /cannot forget by labels or fields/],
      [past('rv:0..-0s', `${MAPS}?labelSelector=a%3Db`), /cannot forget by labels or fields/],
      [past('rv:0..-0s', '/version'), /only objects and collections/],
    ]
    for (const [path, message] of refused) {
      const { status, text } = await bed.send(path, { method: 'DELETE' })
      assert.equal(status, 400, `${path}: ${text}`)
      assert.match(text, message)
    }
    assert.equal((await bed.send(past('-1s', `${MAPS}/two`), { method: 'DELETE' })).status, 405)
    assert.deepEqual(await names(revisions[1]), ['kube-root-ca.crt', 'two'])
  })
})
