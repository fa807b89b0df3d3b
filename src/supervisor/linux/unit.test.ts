import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { unitWord } from '#lib/systemd-text.ts'

import { environmentText, unitText } from './unit.ts'

describe('systemd unit of the supervisor', () => {
  it('has the expected text', () => {
    const command = ['/opt/my programs/hyperkube', 'node', 'run', '--config=/etc/kubernetes/node.yaml']
    assert.equal(
      unitText({ command, environmentFile: '/etc/kubernetes/node-service.env' }),
      `[Unit]
Description=Keeps kubelet, flanneld and kube-proxy of this machine alive
Wants=network-online.target
After=network-online.target containerd.service
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart="/opt/my programs/hyperkube" node run --config=/etc/kubernetes/node.yaml
EnvironmentFile=-/etc/kubernetes/node-service.env
SyslogIdentifier=hyperkube-node
Restart=on-failure
RestartSec=5s
KillMode=process
Delegate=yes
TasksMax=infinity
LimitNOFILE=1048576
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
`,
    )
  })

  it('contains arguments in quotes', () => {
    const cases: [string, string][] = [
      ['plain', 'plain'],
      ['two words', '"two words"'],
      ['50%', '50%%'],
      ['$HOME', '"$$HOME"'],
      ['a"b\\c', '"a\\"b\\\\c"'],
      ['', '""'],
    ]
    for (const [text, word] of cases) assert.equal(unitWord(text), word)
    assert.throws(() => unitWord('a\nb'))
  })

  it('contains no secrets, which are in an environment file', () => {
    assert.equal(environmentText({ A: 'x y', B: 'q"$`\\' }), 'A="x y"\nB="q\\"\\$\\`\\\\"\n')
    assert.throws(() => environmentText({ A: 'x\nB=1' }), /does not fit into one line/)
  })
})
