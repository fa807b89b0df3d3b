import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { mergeOptions, splitOptions } from './options.ts'
import { readSettings } from './settings-file.ts'

const GOOD = {
  clusterCidr: '10.42.0.0/16',
  clusterDomain: 'cluster.local',
  serviceCidr: '10.43.0.0/16',
  dnsServiceIp: '10.43.0.10',
  cniComponent: 'flannel',
  cniMode: 'VXLAN',
  nodeIp: '10.1.2.3',
  nodeName: 'Node-1',
}

describe('the file of a worker', () => {
  it('is taken with what is left out', () => {
    assert.deepEqual(readSettings({ ...GOOD, vni: 4096 }), {
      ...GOOD,
      cniMode: 'vxlan',
      nodeName: 'node-1',
      vni: 4096,
      kubeletOptions: [],
      kubeProxyOptions: [],
    })
  })

  it('names every fault at once', () => {
    const { nodeIp: _, ...rest } = GOOD
    assert.throws(() => readSettings({ ...rest, vni: '1', kubeletOption: [] }), {
      message: 'unknown key "kubeletOption"; "nodeIp" is missing; "vni" must be a whole number above 0',
    })
    assert.throws(() => readSettings([]), { message: 'the file does not hold settings of a node' })
    assert.throws(() => readSettings({ ...GOOD, cniMode: 'ipvlan' }), { message: /^Unknown CNI mode "ipvlan"; use / })
  })
})

describe('options', () => {
  it('come between semicolons, with or without quotes', () => {
    assert.deepEqual(splitOptions('"--v=2"; --a=b;;"--c=x y"'), ['--v=2', '--a=b', '--c=x y'])
    assert.deepEqual(splitOptions(''), [])
  })

  it('count once, the first of each', () => {
    assert.deepEqual(mergeOptions(['--a=1'], ['--a=2', '--b'], ['--b=3', '--c=a=b']), ['--a=1', '--b', '--c=a=b'])
  })
})
