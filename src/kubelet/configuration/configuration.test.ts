import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { CONFIGURATION, readConfiguration } from './configuration.ts'
import { parseCpuSet } from './cpu-set.ts'
import { withDefaults } from './defaults.ts'
import { loadFile, mergeDropIns } from './loading.ts'
import { shownConfiguration } from './printing.ts'

const HEAD = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n'
const failOnWarning = (message: string): void => assert.fail(message)
const load = (more: string) => loadFile({ path: '/etc/k/c.yaml', source: `${HEAD}${more}` }, failOnWarning)

describe('KubeletConfiguration', () => {
  it('treats zero as unset, except where zero is a value', () => {
    const config = withDefaults(readConfiguration(`${HEAD}port: 0\nhealthzPort: 0\nsyncFrequency: 0s\nkubeAPIQPS: 0\n`))
    assert.equal(config.port, 10_250)
    assert.equal(config.healthzPort, 0)
    assert.equal(config.syncFrequency, '1m0s')
    assert.equal(config.kubeAPIQPS, 0)
  })

  it('derives nodeStatusReportFrequency from its update frequency, and parallel pulls from maxParallelImagePulls', () => {
    assert.equal(withDefaults({}).nodeStatusReportFrequency, '5m0s')
    assert.equal(withDefaults({ nodeStatusUpdateFrequency: '20s' }).nodeStatusReportFrequency, '20s')
    assert.equal(withDefaults({ maxParallelImagePulls: 3 }).serializeImagePulls, false)
  })

  it('requires authentication and has no read-only port, unless a field or flag changes that', () => {
    const { authentication, authorization, readOnlyPort } = withDefaults({})
    assert.deepEqual(
      [authentication.anonymous.enabled, authentication.webhook.enabled, authorization.mode, readOnlyPort],
      [false, true, 'Webhook', undefined],
    )
  })

  it("has upstream's eviction defaults, and resolves paths relative to its file", () => {
    assert.equal(load('').evictionHard?.['memory.available'], '100Mi')
    assert.deepEqual(load('evictionHard: {memory.available: 1Gi}').evictionHard, { 'memory.available': '1Gi' })
    const merged = load('evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true')
    assert.deepEqual(
      [merged.evictionHard?.['memory.available'], merged.evictionHard?.['nodefs.available']],
      ['1Gi', '10%'],
    )
    const { resolvConf, authentication } = load('resolvConf: r.conf\nauthentication: {x509: {clientCAFile: ca.crt}}')
    assert.deepEqual([resolvConf, authentication.x509.clientCAFile], ['/etc/k/r.conf', '/etc/k/ca.crt'])
    assert.deepEqual([authentication.webhook.enabled, authentication.webhook.cacheTTL], [true, '2m0s'])
  })

  it('merges drop-in files by field, replaces lists, and removes fields with null', () => {
    const base = load('clusterDNS: [10.0.0.1, 10.0.0.2]\nsystemReserved: {cpu: 100m}\nmaxPods: 50')
    const source = `${HEAD}clusterDNS: [10.0.0.3]\nsystemReserved: {memory: 1Gi}\nmaxPods: null\n`
    const { clusterDNS, systemReserved, maxPods } = mergeDropIns(base, [{ path: '/d/1.conf', source }])
    assert.deepEqual([clusterDNS, systemReserved, maxPods], [['10.0.0.3'], { cpu: '100m', memory: '1Gi' }, 110])
  })

  it("prints fields in upstream's order and omits empty ones", () => {
    const shown = JSON.stringify(shownConfiguration(load('clusterDomain: cluster.local')))
    assert.ok(
      shown.startsWith(
        '{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","enableServer":true,"podLogsDir":"/var/log/pods","syncFrequency":"1m0s"',
      ),
      shown,
    )
    assert.ok(shown.includes('"clusterDomain":"cluster.local","streamingConnectionIdleTimeout":"4h0m0s"'))
    assert.ok(!shown.includes('readOnlyPort'))
  })
})

describe('a field of KubeletConfiguration', () => {
  const folder = new URL('..', import.meta.url).pathname
  const elsewhere = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.includes('.test.') && !file.startsWith('configuration/'),
  )
  const programFolder = join(folder, '../cmd/kubelet')
  const program = readdirSync(programFolder).filter((file) => !/flags|test|fixture/.test(file))
  const text = [...elsewhere.map((file) => join(folder, file)), ...program.map((file) => join(programFolder, file))]
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n')
  const reasons = new Set(
    CONFIGURATION.options
      .filter(({ unsupported, idle }) => (unsupported ?? idle) !== undefined)
      .map(({ path }) => path),
  )

  /** Fields used while the configuration is loaded. */
  const HERE = new Set([
    'kind',
    'apiVersion',
    'mergeDefaultEvictionSettings',
    'runOnce',
    'enforceNodeAllocatable',
    'failCgroupV1',
  ])

  it('is used in the sources, or its table row marks it as unsupported or without effect', () => {
    const ignored = [...CONFIGURATION.schema.fields.keys()].filter(
      (field) => !HERE.has(field) && !reasons.has(field) && !new RegExp(`\\b${field}\\b`).test(text),
    )
    assert.deepEqual(ignored, [])
  })
})

describe('parseCpuSet()', () => {
  it("parses Linux' format of CPU lists, and returns Go's errors", () => {
    assert.deepEqual([...(parseCpuSet('0-2,8') as Set<number>)], [0, 1, 2, 8])
    assert.equal(parseCpuSet('a'), 'strconv.Atoi: parsing "a": invalid syntax')
    assert.equal(parseCpuSet('3-1'), 'invalid range "3-1" (3 > 1)')
  })
})
