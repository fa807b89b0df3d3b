import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Controller, defineController } from '../controller.ts'
import { CONTROLLERS } from '../index.ts'
import { CONTROLLER_FLAGS, controllerSettings, workersOf } from '../settings.ts'
import { chooseControllers, CONTROLLER_NAMES } from './selection.ts'

function named(name: string, isOptional: boolean = false): Controller {
  return defineController({ name, isOptional, watches: [], rules: [], reconcile: () => Promise.resolve() })
}

const ALL = [
  named('ttl-controller'),
  named('namespace-controller'),
  named('bootstrap-signer-controller', true),
  named('node-ipam-controller'),
]

describe('chooseControllers() by --controllers', () => {
  const cases: readonly [requested: readonly string[], chosen: readonly string[]][] = [
    [['*'], ['ttl-controller', 'namespace-controller', 'node-ipam-controller']],
    [
      ['*', '-ttl', 'bootstrapsigner'],
      ['namespace-controller', 'bootstrap-signer-controller', 'node-ipam-controller'],
    ],
    [
      ['*', '-node-ipam-controller'],
      ['ttl-controller', 'namespace-controller'],
    ],
    [['namespace'], ['namespace-controller']],
    [
      ['-ttl', 'ttl', '*'],
      ['namespace-controller', 'node-ipam-controller'],
    ],
    [[], []],
  ]
  for (const [requested, chosen] of cases) {
    it(`runs ${chosen.join(', ') || 'nothing'} for --controllers=${requested.join(',')}`, () => {
      const { controllers, errors, cloudOnly } = chooseControllers(ALL, requested)
      assert.deepEqual(
        controllers.map(({ name }) => name),
        chosen,
      )
      assert.deepEqual([errors, cloudOnly], [[], []])
    })
  }

  it("rejects unknown controller names with upstream's message", () => {
    const { errors } = chooseControllers(ALL, ['*', '-nothing', 'replica-set'])
    assert.deepEqual(errors, [
      '"nothing" is not in the list of known controllers',
      '"replica-set" is not in the list of known controllers',
    ])
  })

  it('reports explicitly selected controllers that cloud-controller-manager runs', () => {
    assert.deepEqual(chooseControllers(ALL, ['*', 'route', '-service']).cloudOnly, ['node-route-controller'])
  })
})

describe('table of controllers', () => {
  it("has upstream's names in order, with their aliases", () => {
    const names = CONTROLLERS.map(({ name }) => name)
    assert.deepEqual(names, [...names].sort())
    for (const { name, aliases = [] } of CONTROLLERS) {
      assert.ok(CONTROLLER_NAMES.includes(name), name)
      const { controllers, errors } = chooseControllers(CONTROLLERS, aliases)
      assert.deepEqual([errors, controllers.map((one) => one.name)], [[], aliases.length === 0 ? [] : [name]])
    }
  })

  it("has flag groups only for upstream's controllers", () => {
    for (const name of Object.keys(CONTROLLER_FLAGS)) assert.ok(CONTROLLER_NAMES.includes(name), name)
  })
})

describe('workersOf() for a controller', () => {
  it('returns the value of the flag for concurrent syncs', () => {
    const settings = controllerSettings({ 'concurrent-namespace-syncs': 3 })
    assert.equal(workersOf('namespace-controller', settings), 3)
    assert.equal(workersOf('garbage-collector-controller', settings), 20)
    assert.equal(workersOf('serviceaccount-token-controller', settings), 5)
    assert.equal(workersOf('serviceaccount-controller', settings), undefined)
    assert.equal(workersOf('ttl-controller', settings), undefined)
  })
})
