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

describe('settings file of a Windows worker', () => {
  it('has defaults for omitted keys', () => {
    assert.deepEqual(readSettings({ ...GOOD, vni: 4096 }), {
      ...GOOD,
      cniMode: 'vxlan',
      nodeName: 'node-1',
      vni: 4096,
      kubeletOptions: [],
      kubeProxyOptions: [],
    })
  })

  it('causes one error that lists all faults', () => {
    const { nodeIp: _, ...rest } = GOOD
    assert.throws(() => readSettings({ ...rest, vni: '1', kubeletOption: [] }), {
      message: 'unknown key "kubeletOption"; "nodeIp" is missing; "vni" must be a whole number above 0',
    })
    assert.throws(() => readSettings([]), { message: 'the file does not contain settings of a node' })
    assert.throws(() => readSettings({ ...GOOD, cniMode: 'ipvlan' }), { message: /^Unknown CNI mode "ipvlan"; use / })
  })
})

describe('flags in the settings file of a Windows worker', () => {
  it('are separated by semicolons, with or without quotes', () => {
    assert.deepEqual(splitOptions('"--v=2"; --a=b;;"--c=x y"'), ['--v=2', '--a=b', '--c=x y'])
    assert.deepEqual(splitOptions(''), [])
  })

  it('have their first value if they are repeated', () => {
    assert.deepEqual(mergeOptions(['--a=1'], ['--a=2', '--b'], ['--b=3', '--c=a=b']), ['--a=1', '--b', '--c=a=b'])
  })
})
