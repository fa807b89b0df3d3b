// Loads the program: its sources in a checkout, else the bundle; `npm start` names one it made of those sources, which
// starts in half the time. Plain JavaScript, because type stripping costs 60 ms
// on a start without compile cache, and this file runs before there is one. The cache lives in the user's own cache
// folder, never in the shared temp folder that is Node's default: whoever can write there could plant code.
//
// What people type all day and what they wait for is one file without import statements: it is there in half the time that
// its modules take. So is what stays beside a node's processes, which then holds nothing of them.
const { existsSync } = require('node:fs')
const { enableCompileCache } = require('node:module')
const { dirname, join } = require('node:path')

const SINGLE = new Map([
  ['kubectl', 'kubectl.cjs'],
  ['kube-apiserver', 'kube-apiserver.cjs'],
  ['apiserver', 'kube-apiserver.cjs'],
  ['kube-controller-manager', 'kube-controller-manager.cjs'],
  ['controller-manager', 'kube-controller-manager.cjs'],
  ['up', 'up.cjs'],
  ['node', 'node.cjs'],
])

const { XDG_CACHE_HOME, HOME, LOCALAPPDATA, HYPERKUBE_BUNDLE, HYPERKUBE_ARGV0 } = process.env
const folder = XDG_CACHE_HOME || LOCALAPPDATA || (HOME && `${HOME}/.cache`)
if (folder) enableCompileCache(`${folder}/hyperkube`)
const source = join(__dirname, '..', 'src', 'cmd', 'entry.ts')
const isSource = !HYPERKUBE_BUNDLE && existsSync(source)
const bundle = HYPERKUBE_BUNDLE || join(__dirname, '..', 'dist', 'hyperkube.mjs')
const single = isSource ? undefined : SINGLE.get(HYPERKUBE_ARGV0 === 'hyperkube' ? process.argv[2] : HYPERKUBE_ARGV0)
if (single !== undefined) require(join(dirname(bundle), single)).start()
else void import(require('node:url').pathToFileURL(isSource ? source : bundle).href)
