import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { storageVersion } from './storageversion.ts'

const { create, update, cells } = tryRules(storageVersion)
const body = { metadata: { name: 'apps.deployments' }, spec: {} }
const server = {
  apiServerID: 'a',
  encodingVersion: 'apps/v1',
  decodableVersions: ['apps/v1', 'apps/v1beta1'],
  servedVersions: ['apps/v1'],
}

async function statusErrors(status: object): Promise<readonly string[]> {
  return (await update({ ...body, status }, body, 'status')).errors
}

test('a StorageVersion requires a name that consists of group and resource', async () => {
  assert.deepEqual((await create(body)).errors, [])
  const table: readonly (readonly [string, RegExp])[] = [
    ['pods', /name must be in the form of <group>\.<resource>$/],
    ['A.b', /the group segment a lowercase RFC 1123 subdomain must/],
    ['a.1b', /the resource segment a DNS-1035 label must/],
    ['a.', /the resource segment a DNS-1035 label must/],
    ['.b', /the group segment a lowercase RFC 1123 subdomain must/],
  ]
  for (const [name, error] of table) {
    const { errors } = await create(changed(body, 'metadata.name', name))
    assert.equal(errors.length, 1, name)
    assert.match(errors[0] ?? '', error)
  }
})

test('a StorageVersion requires that each server can decode the version it encodes', async () => {
  const agreed = { storageVersions: [server], commonEncodingVersion: 'apps/v1' }
  assert.deepEqual(await statusErrors(agreed), [])
  const at = 'status.storageVersions[0]'
  const one = (part: object): object => ({ ...agreed, storageVersions: [{ ...server, ...part }] })
  assert.deepEqual(await statusErrors({ ...agreed, storageVersions: [server, server] }), [
    'status.storageVersions[1].apiServerID: Duplicate value: "a"',
  ])
  assert.deepEqual(await statusErrors(one({ decodableVersions: ['v1'], servedVersions: ['v2'] })), [
    `${at}.decodableVersions: Invalid value: ["v1"]: decodableVersions must include encodingVersion apps/v1`,
    `${at}.servedVersions[0]: Invalid value: "v2": individual served version : v2 must be included in decodableVersions : [v1]`,
  ])
  const odd = { encodingVersion: '/V', decodableVersions: ['/V'], servedVersions: [] }
  const errors = await statusErrors({ storageVersions: [{ ...server, ...odd }], commonEncodingVersion: '/V' })
  assert.match(
    errors[0] ?? '',
    /encodingVersion: Invalid value: "\/V": group part: must be non-empty,version part: a DNS-1035/,
  )
  const [long] = await statusErrors(one({ servedVersions: ['a/b/c'], decodableVersions: ['apps/v1', 'a/b/c'] }))
  assert.match(
    long ?? '',
    /an apiVersion is a DNS-1035 label, which must consist of .* \(e\.g\. 'example\.com\/MyVersion'\)$/,
  )
})

test('a StorageVersion requires commonEncodingVersion if all servers agree, and forbids it otherwise', async () => {
  const field = 'status.commonEncodingVersion: Invalid value:'
  const other = { ...server, apiServerID: 'b', encodingVersion: 'apps/v1beta1' }
  assert.deepEqual(await statusErrors({ storageVersions: [server, other] }), [])
  assert.deepEqual(await statusErrors({ storageVersions: [server] }), [
    `${field} null: the common encoding version is apps/v1`,
  ])
  assert.deepEqual(await statusErrors({ storageVersions: [server], commonEncodingVersion: 'v2' }), [
    `${field} "v2": the actual common encoding version is apps/v1`,
  ])
  assert.deepEqual(await statusErrors({ commonEncodingVersion: 'v2' }), [
    `${field} "v2": should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet`,
  ])
})

test('a StorageVersion requires distinct types, a reason and a message in conditions', async () => {
  const condition = { type: 'A', status: 'True', reason: 'R', message: 'm', lastTransitionTime: '2026-01-01T00:00:00Z' }
  assert.deepEqual(await statusErrors({ conditions: [condition] }), [])
  assert.deepEqual(await statusErrors({ conditions: [condition, { ...condition, reason: '', message: '' }] }), [
    'status[1].type: Invalid value: "A": the type of the condition is not unique, it also appears in conditions[0]',
    'status[1].reason: Required value',
    'status[1].message: Required value',
  ])
})

test('a StorageVersion ignores the status on an update', async () => {
  const stored = { ...body, status: { commonEncodingVersion: 'wrong' } }
  const { object, errors } = await update({ ...body, status: {} }, stored)
  assert.deepEqual([object.status, errors], [stored.status, []])
})

test('a StorageVersion prints at most three servers and the number of the rest', () => {
  assert.deepEqual(cells(body), ['apps.deployments', '<unset>', '<unset>', '<unknown>'])
  const servers = ['a', 'b', 'c', 'd'].map((apiServerID) => ({ apiServerID, encodingVersion: 'v1' }))
  const shown = cells({ ...body, status: { storageVersions: servers, commonEncodingVersion: 'v1' } })
  assert.deepEqual(shown.slice(1, 3), ['v1', 'a=v1,b=v1,c=v1 + 1 more...'])
})
