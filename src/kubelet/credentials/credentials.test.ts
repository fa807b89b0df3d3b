import assert from 'node:assert/strict'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { createVirtualClock, realClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'

import { createKubeletMeters } from '../metrics/kubelet-families.ts'
import {
  CredentialProvider,
  type CredentialProviderOptions,
  type CredentialRequest,
  type CredentialResponse,
} from './credential-provider.ts'
import { matchesImage } from './image-match.ts'
import { type ProviderConfig, readProviders } from './provider-config.ts'
import { providerProgram, readResponse } from './provider-program.ts'
import { registryFile } from './registry-file.ts'

const V1 = 'credentialprovider.kubelet.k8s.io/v1'

const POD = {
  metadata: { name: 'p', namespace: 'ns', uid: 'u1' },
  spec: { serviceAccountName: 'sa', containers: [] },
  status: {},
} as unknown as Pod

test('matchesImage() compares host parts, port and path of an image with a pattern', () => {
  const table: readonly (readonly [pattern: string, image: string, fits: boolean])[] = [
    ['registry.io', 'registry.io/a/b:1', true],
    ['*.registry.io', 'eu.registry.io/a', true],
    ['*.registry.io', 'registry.io/a', false],
    ['*.*.registry.io', 'a.b.registry.io/x', true],
    ['registry.io/team', 'registry.io/team/app', true],
    ['registry.io/team', 'registry.io/other', false],
    ['registry.io:5000', 'registry.io:5000/a', true],
    ['registry.io', 'registry.io:5000/a', false],
    ['r?gistry.io', 'registry.io/a', true],
    ['regis*.io', 'registry.io/a', true],
  ]
  for (const [pattern, image, fits] of table) assert.equal(matchesImage(pattern, image), fits, `${pattern} ${image}`)
})

const fileOf = (providers: unknown): { path: string; source: string } => ({
  path: 'f.yaml',
  source: JSON.stringify({ apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig', providers }),
})
const CONFIG = { name: 'asker', matchImages: ['*.io'], defaultCacheDuration: '10m', apiVersion: V1 }

test('the configuration of credential providers is parsed, or rejected with upstream’s texts', () => {
  const [read] = readProviders([fileOf([CONFIG])], true)
  assert.equal(read?.name, 'asker')
  const complaints: readonly (readonly [unknown, RegExp])[] = [
    [[], /providers: Required value: at least 1 item in plugins is required/],
    [[{ ...CONFIG, name: 'a/b' }], /providers\.name: Invalid value: "a\/b": provider name cannot contain '\/'/],
    [[{ ...CONFIG, apiVersion: 'x/v1' }], /providers\.apiVersion: Unsupported value: "x\/v1"/],
    [[{ ...CONFIG, matchImages: [] }], /providers\.matchImages: Required value: at least 1 item in matchImages/],
    [[{ ...CONFIG, defaultCacheDuration: undefined }], /providers\.defaultCacheDuration: Required value/],
    [[CONFIG, CONFIG], /duplicate provider name "asker" found in configuration file\(s\)/],
    [[{ ...CONFIG, extra: 1 }], /unknown field "providers\[0\]\.extra"/],
    [
      [{ ...CONFIG, tokenAttributes: { serviceAccountTokenAudience: 'a', requireServiceAccount: true } }],
      /providers\.tokenAttributes\.cacheType: Required value: cacheType is required to be set/,
    ],
  ]
  for (const [providers, complaint] of complaints) {
    assert.throws(() => readProviders([fileOf(providers)], true), complaint)
  }
  const tokenAttributes = { serviceAccountTokenAudience: 'a', requireServiceAccount: true, cacheType: 'Token' }
  assert.equal(readProviders([fileOf([{ ...CONFIG, tokenAttributes }])], true).length, 1)
  assert.throws(() => readProviders([fileOf([{ ...CONFIG, tokenAttributes }])], false), /feature gate is disabled/)
})

interface ProviderBed {
  readonly provider: CredentialProvider
  readonly requests: CredentialRequest[]
  readonly errors: () => boolean
  readonly clock: ReturnType<typeof createVirtualClock>
}

function providerBed(
  response: Partial<CredentialResponse> | Error,
  config: Partial<ProviderConfig> = {},
  more: Partial<CredentialProviderOptions> = {},
): ProviderBed {
  const clock = createVirtualClock()
  const requests: CredentialRequest[] = []
  const meters = createKubeletMeters()
  const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock })
  const provider = new CredentialProvider({
    config: { ...CONFIG, ...config },
    clock,
    log,
    meters,
    run: async (request) => {
      requests.push(request)
      if (response instanceof Error) throw response
      return { cacheKeyType: 'Image', auth: { 'a.io': { username: 'u', password: 'p' } }, ...response }
    },
    serviceAccount: async () => ({ metadata: { uid: 'sa1', annotations: { role: 'r', other: 'x' } } }),
    token: async (_, audience) => `token for ${audience}`,
    ...more,
  })
  const errors = (): boolean => meters.registry.render().includes('kubelet_credential_provider_plugin_errors_total{')
  return { provider, requests, clock, errors }
}

test('responses of a credential provider are cached per image, registry or globally, for the returned duration', async () => {
  const table: readonly (readonly [cacheKeyType: string, calls: number])[] = [
    ['Image', 3],
    ['Registry', 2],
    ['Global', 1],
  ]
  for (const [cacheKeyType, calls] of table) {
    const { provider, requests, clock } = providerBed({ cacheKeyType, cacheDuration: '1m' })
    for (const image of ['a.io/x', 'a.io/x', 'a.io/y', 'b.io/x']) await provider.credentialsFor(POD, image)
    assert.equal(requests.length, calls, cacheKeyType)
    await clock.advance(61_000)
    await provider.credentialsFor(POD, 'a.io/x')
    assert.equal(requests.length, calls + 1, 'it is asked again when that is over')
  }
  const { provider, requests } = providerBed({ cacheDuration: '0s' })
  assert.deepEqual(await provider.credentialsFor(POD, 'a.io/x'), [{ auth: { username: 'u', password: 'p' } }])
  await provider.credentialsFor(POD, 'a.io/x')
  assert.equal(requests.length, 2)
  assert.deepEqual(await provider.credentialsFor(POD, 'a.com/x'), [], 'it is not asked for other registries')
  assert.equal(requests.length, 2)
})

test('a credential provider that fails or returns an invalid response yields no credentials', async () => {
  const failing = providerBed(new Error('no'))
  assert.deepEqual(await failing.provider.credentialsFor(POD, 'a.io/x'), [])
  assert.ok(failing.errors())
  assert.deepEqual(await providerBed({ cacheKeyType: 'Moon' }).provider.credentialsFor(POD, 'a.io/x'), [])
})

test('concurrent requests for the same image cause one call of a credential provider', async () => {
  const { provider, requests } = providerBed({ cacheDuration: '0s' })
  await Promise.all([1, 2, 3].map(() => provider.credentialsFor(POD, 'a.io/x')))
  assert.equal(requests.length, 1)
})

test('a credential provider with tokenAttributes gets a service account token and annotations', async () => {
  const tokenAttributes = {
    serviceAccountTokenAudience: 'aud',
    cacheType: 'ServiceAccount',
    requireServiceAccount: true,
    requiredServiceAccountAnnotationKeys: ['role'],
    optionalServiceAccountAnnotationKeys: ['missing'],
  }
  const { provider, requests } = providerBed({}, { tokenAttributes })
  await provider.credentialsFor(POD, 'a.io/x')
  assert.deepEqual(requests, [
    { image: 'a.io/x', serviceAccountToken: 'token for aud', serviceAccountAnnotations: { role: 'r' } },
  ])
  await provider.credentialsFor({ ...POD, spec: { containers: [] } }, 'a.io/y')
  assert.equal(requests.length, 1, 'a pod without an account is not for it')
  const lacking = providerBed(
    {},
    { tokenAttributes: { ...tokenAttributes, requiredServiceAccountAnnotationKeys: ['missing'] } },
  )
  assert.deepEqual(await lacking.provider.credentialsFor(POD, 'a.io/x'), [])
  assert.equal(lacking.requests.length, 0)
  const auth = { 'a.io': { username: 'u', password: 'token for aud' } }
  assert.deepEqual(await providerBed({ auth }, { tokenAttributes }).provider.credentialsFor(POD, 'a.io/x'), [])
  const byToken = providerBed({ auth }, { tokenAttributes: { ...tokenAttributes, cacheType: 'Token' } })
  assert.equal((await byToken.provider.credentialsFor(POD, 'a.io/x')).length, 1)
})

test('a credential provider runs with its arguments and environment, and reads its request from stdin', async (t) => {
  const binDir = await mkdtemp(join(tmpdir(), 'credentials-'))
  t.after(() => rm(binDir, { recursive: true }))
  const answer = `{"kind":"CredentialProviderResponse","apiVersion":"${V1}","cacheKeyType":"Image","auth":{"a.io":{"username":"'$1'","password":"'$WORD'"}}}`
  await writeFile(join(binDir, 'asker'), `#!/bin/sh\ncat > ${binDir}/seen\necho '${answer}'\n`)
  await writeFile(join(binDir, 'failing'), '#!/bin/sh\necho broken >&2\nexit 3\n')
  for (const name of ['asker', 'failing']) await chmod(join(binDir, name), 0o755)
  const config = { ...CONFIG, args: ['one'], env: [{ name: 'WORD', value: 'secret' }] }
  const tools = { binDir, clock: realClock, env: { PATH: process.env['PATH'] } }
  const { auth } = await providerProgram({ config, ...tools })({ image: 'a.io/x' })
  assert.deepEqual(auth, { 'a.io': { username: 'one', password: 'secret' } })
  await assert.rejects(
    providerProgram({ config: { ...config, name: 'failing' }, ...tools })({ image: 'a.io/x' }),
    /error execing credential provider plugin failing for image a\.io\/x: exit status 3: broken/,
  )
  await assert.rejects(
    providerProgram({ config: { ...config, name: 'absent' }, ...tools })({ image: 'a.io/x' }),
    /error execing credential provider plugin absent/,
  )
  assert.throws(() => readResponse('{"apiVersion":"x/v1","kind":"CredentialProviderResponse"}', V1), /did not match/)
  assert.throws(() => readResponse('secret', V1), /error reading GVK from response/)
})

test('registryFile() returns the matching entries of the current file, longest first', async () => {
  await using closing = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-registries-'))
  closing.defer(() => rm(folder, { recursive: true }))
  const file = join(folder, 'config.json')
  const source = registryFile(file)
  assert.deepEqual(await source.credentialsFor(POD, 'a.io/x'), [])
  const auth = (text: string): object => ({ auth: Buffer.from(text).toString('base64') })
  await writeFile(
    file,
    JSON.stringify({ auths: { 'https://a.io': auth('u:p:q'), 'a.io/team': auth('t:1'), 'b.io': auth('b:2') } }),
  )
  const users = (await source.credentialsFor(POD, 'a.io/team/x')).map((each) => [
    each.auth.username,
    each.auth.password,
  ])
  assert.deepEqual(users, [
    ['t', '1'],
    ['u', 'p:q'],
  ])
  assert.deepEqual(Object.keys((await source.credentialsFor(POD, 'b.io/x'))[0] ?? {}), ['auth'], 'it is every pod’s')
  await writeFile(file, 'no JSON')
  assert.deepEqual(await source.credentialsFor(POD, 'a.io/x'), [])
})
