import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { changedEnvironment, parseEnvironment, refuseOverwriting, sourceText, splitEnvironment } from './environment.ts'

describe('environment variables of kubectl set env', () => {
  it('are arguments after the resources', () => {
    assert.deepEqual(splitEnvironment(['deploy/a', 'A=1', 'B-']), { resources: ['deploy/a'], specs: ['A=1', 'B-'] })
    assert.throws(
      () => splitEnvironment(['A=1', 'deploy/a']),
      /all resources must be specified before environment changes/,
    )
  })

  it('may come from arguments and standard input', () => {
    assert.deepEqual(parseEnvironment(['A=1=2', '-', 'B-'], '# no\nC=3 # why\n'), {
      set: [
        { name: 'A', value: '1=2' },
        { name: 'C', value: '3 ' },
      ],
      removed: ['B'],
    })
    assert.throws(() => parseEnvironment(['A=1', 'A-'], ''), /can not both modify and remove/)
    assert.throws(() => parseEnvironment(['1 x=1'], ''), /"1 x" is not a valid key name/)
  })

  it('keep their order', () => {
    const had = [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
      { name: 'C', value: '3' },
    ]
    const next = changedEnvironment(had, {
      set: [
        { name: 'D', value: '4' },
        { name: 'B', value: '5' },
      ],
      removed: ['A'],
    })
    assert.deepEqual(
      next.map(({ name, value }) => `${name}=${value}`),
      ['B=5', 'C=3', 'D=4'],
    )
    assert.throws(() => refuseOverwriting(had, [{ name: 'A', value: '9' }]), /'A' already has a value \(1\)/)
  })

  it('are listed with their sources', () => {
    assert.equal(sourceText({ secretKeyRef: { name: 's', key: 'k' } }), 'secret s, key k')
    assert.equal(sourceText({ fieldRef: { fieldPath: 'metadata.name' } }), 'field path metadata.name')
  })
})
