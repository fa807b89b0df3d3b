import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Ability, chooseRuntime, containerFault, effectiveCapabilities, readAbility } from './runtime-choice.ts'

const ABLE: Ability = { platform: 'linux', isRoot: true, mayMount: true, missing: undefined }

describe('chooseRuntime() of a cluster', () => {
  it('uses containers if the machine supports them, and otherwise reports the reason', () => {
    assert.equal(containerFault(ABLE), undefined)
    assert.equal(containerFault({ ...ABLE, platform: 'darwin' }), 'containers need Linux')
    assert.equal(containerFault({ ...ABLE, isRoot: false }), 'containers need root')
    assert.equal(containerFault({ ...ABLE, mayMount: false }), 'containers need the right to mount (CAP_SYS_ADMIN)')
    assert.equal(containerFault({ ...ABLE, missing: 'There is no runc' }), 'There is no runc')
  })

  it('keeps the previous runtime of a cluster unless the user chooses another', () => {
    const base = { requested: 'auto', nodes: 1, before: undefined, fault: undefined } as const
    assert.deepEqual(chooseRuntime(base), { runtime: 'containerd' })
    assert.deepEqual(chooseRuntime({ ...base, before: 'simulated' }), { runtime: 'simulated' })
    assert.deepEqual(chooseRuntime({ ...base, requested: 'containerd', before: 'simulated' }), {
      runtime: 'containerd',
    })
    assert.deepEqual(chooseRuntime({ ...base, requested: 'simulated', before: 'containerd' }), { runtime: 'simulated' })
    assert.deepEqual(chooseRuntime({ ...base, nodes: 3 }), { runtime: 'simulated' })
    assert.deepEqual(chooseRuntime({ ...base, nodes: 0 }), { runtime: 'simulated' })
  })

  it('falls back to simulated nodes with a reason by default, and fails if the user chose containers', () => {
    const base = { requested: 'auto', nodes: 1, before: undefined, fault: 'containers need root' } as const
    assert.deepEqual(chooseRuntime(base), { runtime: 'simulated', why: 'containers need root' })
    assert.deepEqual(chooseRuntime({ ...base, requested: 'containerd' }), {
      runtime: 'containerd',
      fault: 'containers need root',
    })
    assert.deepEqual(chooseRuntime({ ...base, before: 'containerd' }).fault, 'containers need root')
  })

  it('checks the machine for everything that containers need', async () => {
    assert.equal(effectiveCapabilities('Name:\tnode\nCapEff:\t00000000a80425fb\n') & (1n << 21n), 0n)
    assert.notEqual(effectiveCapabilities('CapEff:\t000001ffffffffff\n') & (1n << 21n), 0n)
    assert.equal(effectiveCapabilities(''), 0n)
    assert.equal((await readAbility({})).platform, process.platform)
  })
})
