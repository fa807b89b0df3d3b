import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { describe, it } from 'node:test'

import { NO_OPINION } from '#auth/authorizer.ts'
import { sampleWrite } from '#kits/admission/sample-write.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { admissionFlagErrors, createAdmission, enabledPlugins, pluginNames, PLUGINS } from './index.ts'

const parts = {
  clock: createVirtualClock(),
  random: createSeededRandom(1),
  isEnabled: () => true,
  authorize: () => NO_OPINION,
  quotas: { updateStatus: () => Promise.resolve() },
  namespaces: { ensure: () => Promise.resolve() },
  resourcesFor: () => [],
  imagePolicy: {
    send: () => Promise.resolve({ allowed: true }),
    allowTtlMs: 0,
    denyTtlMs: 0,
    defaultAllow: false,
  },
}

describe('flags of admission plugins', () => {
  const table: readonly [what: string, flags: object, errors: string[]][] = [
    ['no values', {}, []],
    ['the values that kubeadm passes', { enable: ['NodeRestriction'] }, []],
    ['an unknown plugin to enable', { enable: ['Nope'] }, ['enable-admission-plugins plugin "Nope" is unknown']],
    ['an unknown plugin to disable', { disable: ['Nope'] }, ['disable-admission-plugins plugin "Nope" is unknown']],
    [
      'a plugin that is both enabled and disabled',
      { enable: ['Priority', 'LimitRanger'], disable: ['LimitRanger', 'Priority'] },
      ['[LimitRanger Priority] in enable-admission-plugins and disable-admission-plugins overlapped'],
    ],
    ['a default-off plugin to enable', { enable: ['PodNodeSelector'] }, []],
    ['a default-off plugin to disable', { disable: ['PodNodeSelector'] }, []],
  ]
  for (const [what, flags, errors] of table) {
    it(`${errors.length === 0 ? 'accept' : 'reject'} ${what}`, () =>
      assert.deepEqual(admissionFlagErrors(flags), errors))
  }

  it('prevent the start of the server with an unknown plugin name', () => {
    assert.throws(() => createAdmission({ ...parts, enable: ['Nope'] }), /plugin "Nope" is unknown/)
  })

  it('accept the names of 41 plugins', () => assert.equal(pluginNames.length, 41))
})

describe('table of admission plugins', () => {
  const made = PLUGINS.flatMap(([name, , source]) =>
    typeof source === 'function' ? [{ name, plugin: source(parts) }] : [],
  )

  it('has each plugin under its name, without duplicates', () => {
    assert.deepEqual(
      made.map(({ plugin }) => plugin.name),
      made.map(({ name }) => name),
    )
    assert.equal(new Set(pluginNames).size, PLUGINS.length)
  })

  it('has a row for each file that defines a plugin', async () => {
    const names = new Set(made.map(({ name }) => name))
    const folder = new URL('.', import.meta.url)
    const files = await Array.fromAsync(glob('**/*.ts', { cwd: folder }))
    const texts = files
      .filter((file) => !/\.test\.ts$|^kit\//.test(file))
      .map((file) => readFileSync(new URL(file, folder), 'utf8'))
    const defined = texts.flatMap((text) =>
      [...text.matchAll(/defineAdmission\(\{\s*name: '(\w+)'/g)].map(([, name]) => name),
    )
    assert.ok(defined.length > 10)
    assert.deepEqual(
      defined.filter((name) => !names.has(name ?? '')),
      [],
    )
  })

  it('gives a reason for each upstream plugin that is not implemented', () => {
    const others = Object.groupBy(
      PLUGINS.filter(([, , source]) => typeof source === 'string'),
      ([, , source]) => source as string,
    )
    const namesOf = (rows: (typeof others)[string] = []): string[] => rows.map(([name]) => name)
    assert.deepEqual(namesOf(others['silent']), ['AlwaysAdmit'])
    assert.deepEqual(namesOf(others['elsewhere']), [
      'MutatingAdmissionPolicy',
      'MutatingAdmissionWebhook',
      'ValidatingAdmissionPolicy',
      'ValidatingAdmissionWebhook',
    ])
    assert.deepEqual(Object.keys(others).sort(), ['elsewhere', 'silent'])
  })
})

describe('order of admission plugins', () => {
  it("is the same as upstream's", () => {
    assert.deepEqual(enabledPlugins({}).slice(0, 6), [
      'NamespaceLifecycle',
      'LimitRanger',
      'ServiceAccount',
      'NodeRestriction',
      'TaintNodesByCondition',
      'PodSecurity',
    ])
    assert.equal(enabledPlugins({}).at(-1), 'ResourceQuota')
    assert.ok(!enabledPlugins({ disable: ['Priority'] }).includes('Priority'))
  })

  it('includes plugins that other modules create', async () => {
    const calls: string[] = []
    const on = ['CREATE'] as const
    const admission = createAdmission({
      ...parts,
      more: [
        { name: 'ValidatingAdmissionWebhook', on, validate: () => void calls.push('validate') },
        {
          name: 'MutatingAdmissionWebhook',
          on,
          mutate: ({ object }) => void calls.push(Object.keys(object!.metadata).join()),
        },
      ],
    })
    const { attributes } = sampleWrite({
      resource: 'persistentvolumeclaims',
      object: { metadata: { name: 'c' }, spec: {} },
      world: { namespaces: [{ metadata: { name: 'ns' }, spec: {}, status: {} }] },
    })
    await admission.mutate(attributes)
    await admission.validate(attributes)
    assert.deepEqual(calls, ['name,finalizers', 'validate'])
  })
})
