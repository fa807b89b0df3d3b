/** The key presses of `kubectl-terminal.ts`, and the expected screens. */
import type { Terminal } from './terminal.ts'

export interface Step {
  readonly press?: readonly string[]
  readonly resize?: readonly [columns: number, rows: number]
  /** On the screen after that. */
  readonly sees: RegExp
}

export interface Scene {
  readonly name: string
  readonly steps: readonly Step[]
}

/** With vi, top and a shell. */
export const IMAGE = 'registry.k8s.io/e2e-test-images/busybox:1.37.0-1'

/** Enter behind it. */
const types = (text: string, sees: RegExp): Step => ({ press: [text, 'Enter'], sees })

/** The shell of a container. */
const INSIDE = /^\/ #$/m
/** Ours: it shows the code of what ran before. */
const OUTSIDE = /^\[\d+\]\$$/m
/** Behind a Ctrl-C that did not kill, the shell goes on in the same line. */
const outside = (code: number): RegExp => new RegExp(String.raw`^(?:\^C)?\[${code}\]\$\s*$(?![\s\S]*\S)`, 'm')
const anew: Step = { press: ['C-l'], sees: /^\[\d+\]\$\s*$(?![\s\S]*\S)/m }

const shell = types('kubectl exec -it terminal -- /bin/sh', INSIDE)

export const SCENES: readonly Scene[] = [
  {
    name: 'exec -it: the size of the terminal, and as it changes',
    steps: [
      shell,
      types('stty size', /^30 100$/m),
      { resize: [120, 40], sees: INSIDE },
      types('clear; until stty size | grep "40 120"; do sleep 0.1; done', /^40 120$/m),
      { resize: [100, 30], sees: INSIDE },
      types('clear; until stty size | grep "30 100"; do sleep 0.1; done', /^30 100$/m),
      types('exit 7', outside(7)),
      types('stty -a | grep -ow "icanon\\|echo" | sort | xargs', /^echo icanon$/m),
    ],
  },
  {
    name: 'exec -it vi: a program of the whole screen, resized while it runs',
    steps: [
      { press: ['kubectl exec -it terminal -- vi /tmp/text', 'Enter'], sees: /^~$[\s\S]*- \/tmp\/text/m },
      { press: ['ihello', 'Escape'], sees: /^hello$/m },
      // One line for the text, one for the status.
      { resize: [120, 40], sees: /^hello\n(~\n){38}- \/tmp\/text/ },
      { resize: [100, 30], sees: /^hello\n(~\n){28}- \/tmp\/text/ },
      { press: [':wq', 'Enter'], sees: outside(0) },
      types('kubectl exec terminal -- cat /tmp/text', /^hello$/m),
    ],
  },
  {
    name: 'exec -it top: what draws itself again and again',
    steps: [
      { press: ['kubectl exec -it terminal -- top', 'Enter'], sees: /^Mem: [\s\S]*PID +PPID/m },
      { press: ['q'], sees: outside(0) },
    ],
  },
  {
    name: 'exec -it top: drawn for the size that the terminal has now, until Ctrl-C',
    steps: [
      { press: ['kubectl exec -it terminal -- top -d 1', 'Enter'], sees: /^Mem: [\s\S]*PID +PPID/m },
      { resize: [60, 12], sees: /^Mem: .*\n.*\n.*\n *PID +PPID/ },
      { resize: [100, 30], sees: /^Mem: .*\n.*\n.*\n *PID +PPID/ },
      { press: ['C-c'], sees: outside(0) },
    ],
  },
  {
    name: 'exec -it: a shell hears of each size while something runs in it, and of Ctrl-C',
    steps: [
      shell,
      types('while sleep 0.2; do stty size; done', /^30 100$/m),
      { resize: [120, 40], sees: /^40 120$/m },
      { resize: [80, 20], sees: /^20 80$/m },
      { press: ['C-c'], sees: /\^C\n\/ #$/m },
      types('echo code=$?', /^code=130$/m),
      types('exit 5', outside(5)),
    ],
  },
  {
    name: 'exec -it: Ctrl-C is for the program at the other end',
    steps: [
      shell,
      types('echo begun; sleep 1000', /^begun$/m),
      { press: ['C-c'], sees: /\^C\n\/ #$/m },
      types('echo code=$?', /^code=130$/m),
      { press: ['C-d'], sees: outside(0) },
    ],
  },
  {
    name: 'exec without -t: Ctrl-C is for kubectl',
    steps: [
      types('kubectl exec terminal -- sh -c "echo begun; sleep 1000"', /^begun$/m),
      { press: ['C-c'], sees: outside(130) },
    ],
  },
  {
    name: 'run -it --rm, attach -it and back',
    steps: [
      {
        press: [
          `kubectl run once -it --rm --restart=Never --image=${IMAGE} --image-pull-policy=Never -- /bin/sh`,
          'Enter',
        ],
        sees: /try pressing enter|\/ #/,
      },
      { press: ['Enter'], sees: INSIDE },
      types('stty size', /^30 100$/m),
      types('exit', /^pod "once" deleted/m),
      anew,
    ],
  },
  {
    name: 'debug -it: another container beside it',
    steps: [
      {
        press: [`kubectl debug -it terminal --image=${IMAGE} --image-pull-policy=Never -- /bin/sh`, 'Enter'],
        sees: /try pressing enter|\/ #/,
      },
      { press: ['Enter'], sees: INSIDE },
      types('stty size', /^30 100$/m),
      types('exit 3', OUTSIDE),
      anew,
    ],
  },
  {
    name: 'edit with vi: saved, and left as it is',
    steps: [
      { press: ['kubectl edit configmap edited', 'Enter'], sees: /^# Please edit the object below/m },
      { press: [':%s/red/green/', 'Enter', ':wq', 'Enter'], sees: /^configmap\/edited edited$/m },
      types('kubectl get cm edited -o \'jsonpath={.data.colour}{"\\n"}\'', /^green$/m),
      { press: ['kubectl edit configmap edited', 'Enter'], sees: /^# Please edit the object below/m },
      { press: [':q', 'Enter'], sees: /^Edit cancelled, no changes made\.$/m },
    ],
  },
  {
    name: 'edit with vi: what the server refuses is shown in the editor again',
    steps: [
      { press: ['kubectl edit configmap edited', 'Enter'], sees: /^# Please edit the object below/m },
      {
        press: [':%s/colour: .*/colour: {}/', 'Enter', ':wq', 'Enter'],
        sees: /^# configmaps "edited" was not valid:/m,
      },
      { press: [':q!', 'Enter'], sees: outside(1) },
    ],
  },
  {
    name: 'edit with a script as editor',
    steps: [
      types("EDITOR='sed -i s/colour:.*/colour:\\ blue/' kubectl edit configmap edited", /^configmap\/edited edited$/m),
    ],
  },
  {
    name: 'get -w: a line for each change, until Ctrl-C',
    steps: [
      types('kubectl get configmaps edited -w &', /^edited +1 +\d+/m),
      types('kubectl annotate configmap edited seen=yes', /^configmap\/edited annotated$/m),
      { sees: /(^edited +1 +\S+\s+[\s\S]*){2}/m },
      types('fg', /^kubectl get configmaps edited -w$/m),
      { press: ['C-c'], sees: outside(1) },
    ],
  },
  {
    name: 'logs -f, until Ctrl-C',
    steps: [types('kubectl logs -f terminal', /^line 3$/m), { press: ['C-c'], sees: outside(1) }],
  },
  {
    name: 'port-forward, until Ctrl-C',
    steps: [
      types('kubectl port-forward pod/terminal :8080', /^Forwarding from 127\.0\.0\.1:\d+ -> 8080$/m),
      { press: ['C-c'], sees: outside(0) },
    ],
  },
  {
    name: 'wait, until Ctrl-C',
    steps: [
      types('kubectl wait pod/terminal --for=condition=Nothing --timeout=60s & sleep 2; fg', /^kubectl wait pod/m),
      { press: ['C-c'], sees: outside(1) },
    ],
  },
]

/** Rejects with what is seen where something else should be. */
export async function play(terminal: Terminal, { steps }: Scene): Promise<void> {
  for (const { press, resize, sees } of steps) {
    if (press !== undefined) await terminal.press(...press)
    if (resize !== undefined) await terminal.resize(...resize)
    await terminal.sees(sees)
  }
}
