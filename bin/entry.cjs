// Loads the program: its sources in a checkout, else the bundle; `npm start` names one it made of those sources, which
// starts in half the time. Plain JavaScript, because type stripping costs 60 ms
// on a start without compile cache, and this file runs before there is one. The cache lives in the user's own cache
// folder, never in the shared temp folder that is Node's default: whoever can write there could plant code.
//
// What people type all day is one file without import statements: it is there in half the time that sixty modules take. So is
// what stays beside a node's processes, which then holds nothing of them.
const { existsSync } = require('node:fs')
const { enableCompileCache } = require('node:module')
const { join } = require('node:path')

const { XDG_CACHE_HOME, HOME, LOCALAPPDATA, HYPERKUBE_BUNDLE, HYPERKUBE_ARGV0 } = process.env
const folder = XDG_CACHE_HOME || LOCALAPPDATA || (HOME && `${HOME}/.cache`)
if (folder) enableCompileCache(`${folder}/hyperkube`)
const source = join(__dirname, '..', 'src', 'cmd', 'entry.ts')
const published = join(__dirname, '..', 'dist')
const isSource = existsSync(source)
const isPublished = !isSource && !HYPERKUBE_BUNDLE
if (isPublished && HYPERKUBE_ARGV0 === 'kubectl') require(join(published, 'kubectl.cjs')).start()
else if (isPublished && HYPERKUBE_ARGV0 === 'hyperkube' && process.argv[2] === 'node')
  require(join(published, 'node.cjs')).start()
else {
  const program = HYPERKUBE_BUNDLE || (isSource ? source : join(published, 'hyperkube.mjs'))
  void import(require('node:url').pathToFileURL(program).href)
}
