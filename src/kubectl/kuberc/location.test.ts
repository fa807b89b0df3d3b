import assert from 'node:assert/strict'
import { test } from 'node:test'

import { explicitKuberc, kubercLocation } from './location.ts'

test('the path of kuberc comes from --kuberc, else from KUBERC, else from the home folder', () => {
  assert.deepEqual(kubercLocation('', { HOME: '/h' }), { file: '/h/.kube/kuberc', isExplicit: false })
  assert.deepEqual(kubercLocation('', { HOME: '/h', KUBERC: '/e' }), { file: '/e', isExplicit: true })
  assert.deepEqual(kubercLocation('/f', { HOME: '/h', KUBERC: '/e' }), { file: '/f', isExplicit: true })
  assert.equal(kubercLocation('', { KUBERC: 'off' }), undefined)
  assert.throws(() => kubercLocation('/f', { KUBERC: 'off' }), /mutually exclusive/)
})

test('the flag --kuberc is accepted anywhere before "--"', () => {
  assert.equal(explicitKuberc(['get', '--kuberc', 'x', 'pods']), 'x')
  assert.equal(explicitKuberc(['get', '--kuberc=x']), 'x')
  assert.equal(explicitKuberc(['exec', 'x', '--', '--kuberc=x']), '')
  assert.throws(() => explicitKuberc(['get', '--kuberc']), /kuberc file is not found/)
  assert.throws(() => explicitKuberc(['get', '--kuberc=']), /kuberc file is not found/)
})
