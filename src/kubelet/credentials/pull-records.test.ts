import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import type { Image } from '#apis/wire/cri.ts'
import { realClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'

import { createKubeletMeters } from '../metrics/kubelet-families.ts'
import { type Credential, credentialHash } from './credential.ts'
import { isVerified, mergeCredentials, patternFault, VERIFICATION, type Verification } from './pull-policy.ts'
import { PullRecords } from './pull-records.ts'

const IMAGE = 'registry.example:5000/team/app:1'
const REF = `sha256:${'a'.repeat(64)}`
const secret = (name: string, password: string): Credential => {
  const auth = { username: 'u', password }
  return { auth, secret: { uid: `u-${name}`, namespace: 'n', name, credentialHash: credentialHash(auth) } }
}
const account = (name: string): Credential => ({ auth: {}, serviceAccount: { uid: `u-${name}`, namespace: 'n', name } })
const shown =
  (...all: Credential[]): (() => Promise<Credential[]>) =>
  async () =>
    all
const never = (): Promise<never> => assert.fail('nothing hangs on credentials')
const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock: realClock })

interface Bed {
  readonly folder: string
  readonly open: (images?: readonly Partial<Image>[], verification?: Verification) => Promise<PullRecords>
}

async function withFolder(work: (bed: Bed) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'pull-records-'))
  const about = { folder, clock: realClock, log, meters: createKubeletMeters() }
  try {
    await work({
      folder,
      open: (images = [], verification = VERIFICATION) =>
        PullRecords.open({ ...about, verification }, async () => images as Image[]),
    })
  } finally {
    await rm(folder, { recursive: true })
  }
}

test('pods need the credentials of an image pulled with a Secret, but none for a preloaded image', async () => {
  await withFolder(async ({ open, folder }) => {
    const records = await open()
    assert.equal(await records.mustPull(IMAGE, REF, never), false, 'brought by others')
    await records.intend(IMAGE)
    assert.equal(await records.mustPull(IMAGE, REF, never), true, 'while it is pulled')
    await records.pulled(IMAGE, REF, secret('a', 'right'))
    assert.deepEqual(await readdir(join(folder, 'pulling')), [])
    for (const kept of [records, await open()]) {
      assert.equal(await kept.mustPull(IMAGE, REF, shown()), true)
      assert.equal(await kept.mustPull(IMAGE, REF, shown(secret('b', 'wrong'))), true)
      assert.equal(await kept.mustPull(IMAGE, REF, shown(account('a'))), true)
      assert.equal(await kept.mustPull(IMAGE, REF, shown(secret('a', 'right'))), false)
      assert.equal(await kept.mustPull(`${IMAGE}0`, REF, shown(secret('a', 'right'))), false, 'of the same repository')
      assert.equal(await kept.mustPull('other/app:1', REF, shown(secret('a', 'right'))), true, 'of another')
    }
  })
})

test('an image pull record accepts the recorded credential from another Secret, and a new credential from the recorded Secret', async () => {
  await withFolder(async ({ open, folder }) => {
    const records = await open()
    await records.intend(IMAGE)
    await records.pulled(IMAGE, REF, secret('a', 'right'))
    assert.equal(await records.mustPull(IMAGE, REF, shown(secret('b', 'right'))), false)
    assert.equal(await records.mustPull(IMAGE, REF, shown(secret('a', 'turned'))), false)
    assert.equal(await records.mustPull(IMAGE, REF, shown(secret('c', 'turned'))), false)
    const [file = ''] = await readdir(join(folder, 'pulled'))
    const { lastUpdatedTime, ...record } = JSON.parse(await readFile(join(folder, 'pulled', file), 'utf8')) as {
      lastUpdatedTime: string
    }
    assert.match(lastUpdatedTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    assert.deepEqual(record, {
      kind: 'ImagePulledRecord',
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      imageRef: REF,
      credentialMapping: {
        'registry.example:5000/team/app': {
          kubernetesSecrets: [secret('a', 'turned'), secret('b', 'right'), secret('c', 'turned')].map(
            (one) => one.secret,
          ),
        },
      },
    })
  })
})

test('pods need no credentials for an image that was pulled anonymously', () => {
  const all = { nodePodsAccessible: true }
  const { secret: one } = secret('a', 'right')
  assert.ok(one)
  assert.deepEqual(mergeCredentials({ kubernetesSecrets: [one] }, all), all)
  assert.equal(mergeCredentials(all, { kubernetesSecrets: [one] }), all)
  const { serviceAccount = one } = account('x')
  assert.deepEqual(mergeCredentials({ kubernetesSecrets: [one] }, { kubernetesServiceAccounts: [serviceAccount] }), {
    kubernetesSecrets: [one],
    kubernetesServiceAccounts: [serviceAccount],
  })
})

test('after a restart of the kubelet during a pull, the image counts as pulled with unknown credentials', async () => {
  await withFolder(async ({ open, folder }) => {
    await (await open()).intend('nginx')
    await (await open()).intend('gone')
    const records = await open([{ id: REF, repoTags: ['docker.io/library/nginx:latest'], repoDigests: [] }])
    assert.equal(await records.mustPull('nginx', REF, never), true)
    assert.equal((await readdir(join(folder, 'pulling'))).length, 1)
    await records.prune([REF], Infinity)
    assert.equal((await readdir(join(folder, 'pulled'))).length, 1)
    await records.prune([], 0)
    assert.equal((await readdir(join(folder, 'pulled'))).length, 1, 'newer than the list')
    await records.prune([], Infinity)
    assert.deepEqual(await readdir(join(folder, 'pulled')), [])
  })
})

test('a pull intent is removed when the last of two concurrent pulls ends, whatever the result', async () => {
  await withFolder(async ({ open, folder }) => {
    const records = await open()
    await Promise.all([records.intend(IMAGE), records.intend(IMAGE)])
    await records.failed(IMAGE)
    assert.equal((await readdir(join(folder, 'pulling'))).length, 1)
    await records.pulled(IMAGE, REF, undefined)
    assert.deepEqual(await readdir(join(folder, 'pulling')), [])
    assert.equal(await records.mustPull(IMAGE, REF, never), false)
  })
})

test('imagePullCredentialsVerificationPolicy selects the images whose credentials are verified', () => {
  const allowed = ['registry.example/free/*', 'registry.example/app']
  const by = (policy: Verification['policy'], image: string, isPulled: boolean): boolean =>
    isVerified({ policy, allowed }, image, isPulled)
  assert.equal(by('NeverVerify', 'a', true), false)
  assert.equal(by('AlwaysVerify', 'a', false), true)
  assert.deepEqual(
    [by('NeverVerifyPreloadedImages', 'a', true), by('NeverVerifyPreloadedImages', 'a', false)],
    [true, false],
  )
  const images = [
    'registry.example/free/x:1',
    'registry.example/app@sha256:1',
    'registry.example/apple',
    'registry.example/free',
  ]
  assert.deepEqual(
    images.map((image) => by('NeverVerifyAllowlistedImages', image, true)),
    [false, false, true, true],
  )
  assert.deepEqual([' a', '', 'a*', '/*', 'a:1', 'A', 'a/b', 'a/*'].map(patternFault), [
    'leading/trailing spaces are not allowed:  a',
    'the supplied pattern is too short: ',
    "not a valid wildcard pattern, only patterns ending with '/*' are allowed: a*",
    'at least registry hostname is required',
    'neither tag nor digest is accepted in an image reference: a:1',
    'failed to parse as an image name: invalid reference format: repository name (library/A) must be lowercase',
    undefined,
    undefined,
  ])
})
