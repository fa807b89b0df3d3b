import assert from 'node:assert/strict'
import { test } from 'node:test'

import { explicitKuberc, kubercPlace } from './place.ts'

test('the flag wins over the environment, and that over the home folder', () => {
  assert.deepEqual(kubercPlace('', { HOME: '/h' }), { file: '/h/.kube/kuberc', isExplicit: false })
  assert.deepEqual(kubercPlace('', { HOME: '/h', KUBERC: '/e' }), { file: '/e', isExplicit: true })
  assert.deepEqual(kubercPlace('/f', { HOME: '/h', KUBERC: '/e' }), { file: '/f', isExplicit: true })
  assert.equal(kubercPlace('', { KUBERC: 'off' }), undefined)
  assert.throws(() => kubercPlace('/f', { KUBERC: 'off' }), /mutually exclusive/)
})

test('the flag is found wherever it stands before the end of flags', () => {
  assert.equal(explicitKuberc(['get', '--kuberc', 'x', 'pods']), 'x')
  assert.equal(explicitKuberc(['get', '--kuberc=x']), 'x')
  assert.equal(explicitKuberc(['exec', 'x', '--', '--kuberc=x']), '')
  assert.throws(() => explicitKuberc(['get', '--kuberc']), /kuberc file is not found/)
  assert.throws(() => explicitKuberc(['get', '--kuberc=']), /kuberc file is not found/)
})
