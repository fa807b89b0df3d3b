/**
 * Bundles kubectl into one file that Node loads fast. Each shared chunk becomes a function that runs on first use, so
 * that V8 neither parses nor compiles unused commands. Node's modules are loaded on first use, too.
 */
import { writeFileSync } from 'node:fs'
import { basename } from 'node:path'

import { build, type BuildOptions, transform } from 'esbuild'

/** `hereAsUrl` stands for `import.meta.url`: parts are all in this file. The two with underscores are what esbuild's own code calls. */
const HEAD = `'use strict'
const hereAsUrl=require('node:url').pathToFileURL(__filename).href
const outside=require
const later=(name)=>new Proxy({},{get:(_,key)=>outside(name)[key]})
const __export=(target,all)=>{for(const name in all)Object.defineProperty(target,name,{get:all[name],enumerable:true})}
const __toESM=(found)=>Object.assign(Object.create(found),{default:found})
const loaded=new Map()
const load=(name)=>{
const known=loaded.get(name)
if(known!==undefined)return known.exports
const part=parts[name]
if(part===undefined)return outside(name)
const module={exports:{}}
loaded.set(name,module)
part(module,load)
return module.exports
}
const parts={
`

export async function bundleKubectl(entry: string, file: string, options: BuildOptions): Promise<void> {
  const { outputFiles } = await build({
    ...options,
    sourcemap: false,
    entryPoints: [entry],
    outdir: '.',
    outExtension: { '.js': '.mjs' },
    chunkNames: '[name]-[hash]',
    splitting: true,
    format: 'esm',
    define: { 'import.meta.url': 'hereAsUrl' },
    write: false,
  })
  const parts = await Promise.all(
    outputFiles.map(
      async ({ path, text }) => `${JSON.stringify(nameOf(path))}(module,require){${await scriptOf(text, options)}},\n`,
    ),
  )
  const first = nameOf(entry.replace(/\.ts$/, '.mjs'))
  writeFileSync(file, `${HEAD}${parts.join('')}}\nmodule.exports=load(${JSON.stringify(first)})\n`)
}

function nameOf(path: string): string {
  return `./${basename(path)}`
}

async function scriptOf(text: string, { target }: BuildOptions): Promise<string> {
  const { code } = await transform(text, {
    format: 'cjs',
    platform: 'node',
    minifyWhitespace: true,
    ...(target !== undefined && { target }),
    // `import()` of what is outside would load all that modules need.
    supported: { 'dynamic-import': false },
  })
  // Its helpers are in the head, once.
  const own = code.slice(code.indexOf('var stdin_exports='))
  const script = own
    .replace('module.exports=__toCommonJS(stdin_exports)', 'module.exports=stdin_exports')
    .replaceAll(/(?<!__toESM\()require\(("node:[\w/]+")\)/g, 'later($1)')
    .replaceAll(/__toESM\((require\("\.\/[^"]+"\))\)/g, '$1')
  const unknown = /\b__(?:toCommonJS|copyProps|reExport)\(/.exec(script)
  if (unknown !== null) throw new Error(`esbuild calls ${unknown[0]}), which the head of the bundle does not have`)
  return script
}
