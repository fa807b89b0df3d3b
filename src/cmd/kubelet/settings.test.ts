import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { GivenConfiguration } from '#kubelet/configuration/configuration.ts'
import { withDefaults } from '#kubelet/configuration/defaults.ts'

import type { KubeletSettings } from './flags.ts'
import { podFacts } from './settings.ts'

const SETTINGS = { 'root-dir': 'lib', 'seccomp-default': false } as unknown as KubeletSettings

function factsOf(given: GivenConfiguration, cgroupVersion: 1 | 2): ReturnType<typeof podFacts> {
  const program = { settings: SETTINGS, configuration: withDefaults(given), cwd: '/var' }
  return podFacts(program, 'cgroupfs', { cgroupVersion })
}

test('the kubelet lets an OOM kill all processes of a container with cgroup v2 unless singleProcessOOMKill is set', () => {
  const table: readonly (readonly [GivenConfiguration, 1 | 2, boolean])[] = [
    [{}, 2, true],
    [{}, 1, false],
    [{ singleProcessOOMKill: false }, 2, true],
    [{ singleProcessOOMKill: true }, 2, false],
  ]
  for (const [given, version, isWhole] of table) {
    assert.equal(factsOf(given, version).killsContainersWhole, isWhole, JSON.stringify([given, version]))
  }
})

test('the kubelet settings omit the default cgroup root and an unset podPidsLimit', () => {
  const facts = factsOf({}, 2)
  assert.equal(facts.rootDir, '/var/lib')
  assert.equal(facts.cgroupRoot, undefined)
  assert.equal(facts.pidsLimit, undefined)
  assert.equal(factsOf({ cgroupRoot: '/' }, 2).cgroupRoot, undefined)
  assert.equal(factsOf({ cgroupRoot: '/pods' }, 2).cgroupRoot, '/pods')
  assert.equal(factsOf({ podPidsLimit: 100 }, 2).pidsLimit, 100)
  assert.equal(factsOf({ cpuCFSQuota: false }, 2).cfsPeriodUs, 0)
})
