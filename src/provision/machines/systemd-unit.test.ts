import assert from 'node:assert/strict'
import { test } from 'node:test'

import { systemdUnit } from './systemd-unit.ts'

test('systemdUnit() escapes all special characters of arguments', () => {
  const unit = systemdUnit({
    name: 'x',
    description: '100% of it\nsecond line',
    command: ['/opt/x', '--plain=1', 'with space', '$HOME', '%h', 'a"b', 'back\\slash'],
    env: { A: 'b c' },
    after: ['etcd'],
  })
  const line = (key: string): string | undefined => unit.split('\n').find((each) => each.startsWith(`${key}=`))
  assert.equal(line('ExecStart'), 'ExecStart=/opt/x --plain=1 "with space" "$$HOME" %%h "a\\"b" "back\\\\slash"')
  assert.equal(line('Description'), 'Description=100%% of it second line')
  assert.equal(line('Environment'), 'Environment="A=b c"')
  assert.equal(line('After'), 'After=network-online.target hyperkube-etcd.service')
})
