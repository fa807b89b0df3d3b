/** The unit of systemd that runs the supervisor, as text. Pure. */
import { unitValue, unitWord } from '#lib/systemd-text.ts'

export const UNIT = 'hyperkube-node.service'

export interface UnitPlan {
  /** The program and what it is told. */
  readonly command: readonly string[]
  /** With the token of an agent; it need not be there. */
  readonly environmentFile: string
}

/**
 * Only the supervisor ends with the unit's main process: the three go on in its cgroup, and the next supervisor takes them over.
 * An end that was meant, a node that was removed for one, is not undone by systemd.
 */
export function unitText({ command, environmentFile }: UnitPlan): string {
  return [
    '[Unit]',
    'Description=Keeps kubelet, flanneld and kube-proxy of this machine alive',
    'Wants=network-online.target',
    'After=network-online.target containerd.service',
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    'Type=exec',
    `ExecStart=${command.map(unitWord).join(' ')}`,
    `EnvironmentFile=-${unitValue(environmentFile)}`,
    'SyslogIdentifier=hyperkube-node',
    'Restart=on-failure',
    'RestartSec=5s',
    'KillMode=process',
    'Delegate=yes',
    'TasksMax=infinity',
    'LimitNOFILE=1048576',
    'OOMScoreAdjust=-999',
    '',
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ].join('\n')
}

/** Variables for a unit: one line each. Throws for what no line can hold. */
export function environmentText(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => {
      if (/[\n\r\0]/.test(value)) throw new Error(`the value of ${name} does not fit into one line`)
      return `${name}="${value.replaceAll(/[\\"$`]/g, '\\$&')}"\n`
    })
    .join('')
}
